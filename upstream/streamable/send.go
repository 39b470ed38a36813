package streamable

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/mcpbridge/bridge/internal/buffers"
	"github.com/mcpbridge/bridge/internal/http1"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/upstream"
)

// envelopeSize is room for what a request has besides its params, in bytes.
const envelopeSize = 256

// send makes one attempt: one POST under a fresh id (B-2, E-36), repeated only
// where a redirect says so.
func (c *Client) send(ctx context.Context, req *request, to sink) (*upstream.Answer, error) {
	req.id, req.target = upstream.NextID(), nil
	var body []byte
	if c.carrier.reuses() {
		buf := buffers.Get(len(req.params) + envelopeSize)
		defer buffers.Put(buf)
		*buf = jsonrpc.AppendRequest((*buf)[:0], req.id, req.call.Method, req.params)
		body = *buf
	} else {
		body = jsonrpc.AppendRequest(nil, req.id, req.call.Method, req.params)
	}
	x, err := c.post(ctx, req, body)
	if err != nil {
		return nil, c.closed(err)
	}
	ans, err := c.receive(ctx, req, x, to)
	return ans, c.closed(err)
}

// post makes the POST, where redirects lead.
func (c *Client) post(ctx context.Context, req *request, body []byte) (exchange, error) {
	for hop := 0; ; hop++ {
		x, err := c.carrier.post(ctx, req, body)
		if err != nil {
			return nil, err
		}
		if s := x.status(); s < 300 || s > 399 {
			return x, nil
		}
		if err := c.redirect(req, x, hop); err != nil {
			return nil, err
		}
	}
}

// closed relabels failures that Close caused.
func (c *Client) closed(err error) error {
	f, ok := err.(*upstream.Failure)
	if !ok || c.ctx.Err() == nil || f.Cause == upstream.Unauthorized {
		return err
	}
	return &upstream.Failure{Cause: upstream.Canceled, Sent: f.Sent, Err: f.Err, Detail: "the upstream client was closed"}
}

// redirect points req at the new location, which must be a 307 or 308 within
// the origin (E-42): credentials never leave it, the method never changes.
func (c *Client) redirect(req *request, x exchange, hop int) error {
	status, location := x.status(), strings.Join(x.values("Location"), "")
	x.finish()
	base := c.url
	if req.target != nil {
		base = req.target
	}
	next, err := base.Parse(location)
	if err != nil || location == "" {
		return refused(status, "the upstream %s redirects (HTTP %d) to nowhere", c.opt.origin(), status)
	}
	if status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect || !http1.SameOrigin(next, c.url) {
		return refused(status, "the upstream %s redirects (HTTP %d) to %s; if that is right, configure that URL",
			c.opt.origin(), status, upstream.Clip(showURL(next)))
	}
	if hop >= http1.MaxRedirects {
		return refused(status, "the upstream %s redirects more than %d times", c.opt.origin(), http1.MaxRedirects)
	}
	next.User = nil
	req.target = next
	return nil
}

// showURL spells a URL without credentials and query (H-11).
func showURL(u *url.URL) string { return u.Scheme + "://" + u.Host + u.EscapedPath() }
