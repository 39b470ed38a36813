package streamable

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/http1"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/sse"
	"github.com/mcpbridge/bridge/upstream"
)

// Signs returns what else but a refusal is evidence of a legacy server: over HTTP there is an answer.
func (c *Client) Signs() upstream.Signs { return upstream.Signs{} }

// LegacyOffer sends a legacy initialize to a server that refused server/discover, so
// that it shows what it is, and closes the session which that may have opened. Where
// that is refused as well, a GET tells servers of HTTP+SSE. This is the only legacy
// traffic the client ever sends (P-5), and the only requests that are not POSTs (E-43). A server may start for it: only ctx bounds it.
func (c *Client) LegacyOffer(ctx context.Context, call *upstream.Call) negotiate.Offer {
	t := newNetCarrier(c.url, &c.opt)
	defer t.close()
	t.legacy = true
	once := &Client{opt: c.opt, url: c.url, carrier: t, ctx: c.ctx}
	held := budget.On(c.opt.Account)
	defer held.Release()
	req := &request{call: &upstream.Call{Method: mcp.MethodInitialize, Authorization: call.Authorization, Header: call.Header, Held: &held},
		id: upstream.NextID(), params: []byte(upstream.LegacyInitialize)}
	x, err := once.post(ctx, req, jsonrpc.AppendRequest(nil, req.id, req.call.Method, req.params))
	if err != nil {
		return negotiate.Offer{}
	}
	session, status := strings.Join(x.values(mcp.HeaderSessionID), ""), x.status()
	ans, err := once.receive(ctx, req, x, sink{})
	if session != "" {
		t.endSession(req, session)
	}
	versions := upstream.Offered(ans)
	if len(versions) == 0 && asksForHTTPSSE(status) {
		return once.httpSSEOffer(ctx, t, req)
	}
	if f, ok := errors.AsType[*upstream.Failure](err); ok && f.Cause == upstream.Unauthorized {
		return negotiate.Offer{Refused: f}
	}
	return negotiate.Offer{Versions: versions}
}

// asksForHTTPSSE reports a status on which clients are to look for the transport of
// 2024-11-05 (2025-11-25, transports, "Backwards Compatibility").
func asksForHTTPSSE(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusNotFound || status == http.StatusMethodNotAllowed
}

// maxEndpoint bounds the first event of a stream of HTTP+SSE, in bytes.
const maxEndpoint = 16 << 10

// Tests wait less.
var (
	// firstEvent is how long the stream of HTTP+SSE may say nothing once it is there: that of another kind does as a rule.
	firstEvent = 5 * time.Second
	// parting bounds the end of the session of a diagnostic handshake.
	parting = 2 * time.Second
)

// httpSSEOffer asks for the stream of HTTP+SSE, whose first event names the endpoint to which
// clients post. A server may guard that alone, and know no POST here, whoever asks.
func (c *Client) httpSSEOffer(ctx context.Context, t *netCarrier, req *request) negotiate.Offer {
	hr := (&http.Request{Method: http.MethodGet, URL: t.url, Host: t.url.Host, Header: t.header(req)}).WithContext(ctx)
	hr.Header.Del("Content-Type")
	hr.Header.Set("Accept", "text/event-stream")
	resp, err := t.transport.RoundTrip(hr)
	if err != nil {
		return negotiate.Offer{}
	}
	defer resp.Body.Close()
	challenge := resp.Header.Values("WWW-Authenticate")
	switch {
	case resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden && len(challenge) > 0:
		return negotiate.Offer{Refused: c.unauthorized(req, resp.StatusCode, challenge)}
	case resp.StatusCode != http.StatusOK || http1.MediaType(resp.Header.Get("Content-Type")) != "text/event-stream":
		return negotiate.Offer{}
	}
	silent := time.AfterFunc(firstEvent, func() { _ = resp.Body.Close() })
	defer silent.Stop()
	if event, err := sse.NewDecoder(resp.Body, maxEndpoint).Next(); err != nil || event.Type != "endpoint" {
		return negotiate.Offer{}
	}
	return negotiate.Offer{Versions: []string{string(mcp.V20241105)}, HTTPSSE: true}
}

// endSession closes the session of a diagnostic handshake. Whoever waits for the verdict has it already.
func (t *netCarrier) endSession(req *request, session string) {
	ctx, cancel := context.WithTimeout(context.Background(), parting)
	defer cancel()
	hr := (&http.Request{Method: http.MethodDelete, URL: t.url, Host: t.url.Host, Header: t.header(req)}).WithContext(ctx)
	hr.Header.Set(mcp.HeaderSessionID, session)
	hr.Header.Set(mcp.HeaderProtocolVersion, string(mcp.V20251125))
	if resp, err := t.transport.RoundTrip(hr); err == nil {
		_ = resp.Body.Close()
	}
}
