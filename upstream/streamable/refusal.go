package streamable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/http1"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/upstream"
)

// receiveRefusal reads a response whose status is not 200: a JSON-RPC error
// where there is one (E-39), else a Failure by status (E-40, E-41).
func (c *Client) receiveRefusal(ctx context.Context, req *request, x exchange) (*upstream.Answer, error) {
	body, err := c.readRefusal(req, x)
	if err != nil {
		x.abort()
		if f := upstream.Interrupted(ctx, true); f != nil {
			return nil, f
		}
		if errors.Is(err, errTooLarge) || budget.Short(err) { // else the status says more
			return nil, c.lost(ctx, x.status(), err)
		}
	}
	f := c.byStatus(req, x, body)
	msg, malformed := jsonrpc.Parse(body)
	if err == nil {
		release(x, malformed == nil && msg.ID == req.id && msg.Kind() == jsonrpc.Response)
	}
	if !mayExplain(f.Status) {
		return nil, f
	}
	if malformed == nil && msg.Error != nil {
		if ans, ok := match(&msg, nil, req.id); ok {
			return ans, nil
		}
	}
	return nil, f
}

// readRefusal reads the body: of an error of the server's as much as of any response.
func (c *Client) readRefusal(req *request, x exchange) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(x, maxErrorBody))
	if err != nil || len(body) < maxErrorBody || x.media() != mediaJSON || !mayExplain(x.status()) {
		return body, err
	}
	whole, err := readAll(&body, x, c.opt.MaxResponse, req.call.Held)
	return *whole, err
}

// mayExplain reports whether an error in the body says more than the status.
func mayExplain(status int) bool {
	switch status {
	case 401, 403, 429, 503:
		return false
	}
	return status >= 300
}

// maxSniffed is how much of a body is looked at for what it is, in bytes.
const maxSniffed = 200

// byStatus judges a status other than 200.
func (c *Client) byStatus(req *request, x exchange, body []byte) *upstream.Failure {
	status, origin := x.status(), c.opt.origin()
	f := refused(status, "the upstream %s answered a request with HTTP %d", origin, status)
	switch {
	case status == 401 || status == 403:
		return c.unauthorized(req, status, x.values("Www-Authenticate"))
	case status == 429 || status == 503:
		f.Cause = upstream.Busy
		f.RetryAfter = http1.RetryAfter(x.values("Retry-After"), time.Now())
		f.Detail = "the upstream " + origin + " is busy (HTTP " + strconv.Itoa(status) + ")"
	case status == 400 && strings.Contains(string(body[:min(len(body), maxSniffed)]), "HTTP request to an HTTPS server"):
		f.Cause = upstream.TLS
		f.Detail = "the port of the upstream " + origin + " speaks TLS; the URL should begin with https://"
	case status == 400 || status == 404 || status == 405:
		f.Cause = upstream.NotModern
		f.Detail = "the upstream " + origin + " answered HTTP " + strconv.Itoa(status) +
			" without a modern error: either the URL is wrong or the server does not speak MCP 2026-07-28"
		if strings.HasSuffix(c.url.Path, "/") && len(c.url.Path) > 1 {
			f.Detail += "; the path of the URL ends with a slash, try it without"
		}
	case status >= 500:
		f.Cause = upstream.ServerError
		f.Detail = "the upstream " + origin + " failed with HTTP " + strconv.Itoa(status)
		if status == 501 { // what web servers say of POST
			f.Detail += "; is the URL that of an MCP server?"
		}
	}
	return f
}

// unauthorized makes the Failure of a request that was refused for want of credentials, or for those that it had.
func (c *Client) unauthorized(req *request, status int, challenge []string) *upstream.Failure {
	policy := c.opt.Policy()
	why, own := policy.Refused(status, req.call.Authorization)
	f := refused(status, "the upstream %s %s", c.opt.origin(), why)
	f.Cause, f.Challenge, f.Own = upstream.Unauthorized, challenge, own
	return f
}

// lost makes the Failure of a response that broke off while it was read.
func (c *Client) lost(ctx context.Context, status int, err error) *upstream.Failure {
	if f := upstream.Interrupted(ctx, true); f != nil {
		f.Status = status
		return f
	}
	if f := asMalformed(c.opt.origin(), err); f != nil {
		f.Status = status
		return f
	}
	f := upstream.Fail(upstream.Lost, err, "the upstream %s ended the response before it was complete", c.opt.origin())
	f.Status = status
	if budget.Short(err) {
		f.Cause = upstream.NoMemory
		f.Detail = budget.Unread(err)
	}
	if errors.Is(err, errTooLarge) {
		f.Cause = upstream.TooLarge
		f.Detail = fmt.Sprintf("the response of the upstream %s exceeds %d bytes", c.opt.origin(), c.opt.MaxResponse)
	}
	return f
}

// refused makes the Failure of a response that is no MCP answer.
func refused(status int, format string, args ...any) *upstream.Failure {
	f := upstream.Fail(upstream.BadResponse, nil, format, args...)
	f.Status = status
	return f
}
