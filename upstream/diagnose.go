package upstream

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

// diagnoseTimeout bounds the diagnostic handshake with a legacy server.
const diagnoseTimeout = 5 * time.Second

// silent: over HTTP, silence says nothing about the era.
func (c *HTTP) silent() bool { return false }

// legacyVersions sends a legacy initialize to a server that refused
// server/discover, so that the error can say what it is, and closes the session
// which that may have opened. This is the only legacy traffic the client ever
// sends (P-5), and the only request that is not a POST (E-43).
func (c *HTTP) legacyVersions(ctx context.Context, call *Call) []string {
	ctx, cancel := context.WithTimeout(ctx, diagnoseTimeout)
	defer cancel()
	t := newNetCarrier(c.url, &c.opt)
	defer t.close()
	t.legacy = true
	once := &HTTP{opt: c.opt, url: c.url, carrier: t, ctx: c.ctx}
	req := &request{call: &Call{Method: mcp.MethodInitialize, Authorization: call.Authorization, Header: call.Header},
		id: nextID(), params: []byte(legacyInitialize)}
	x, err := t.post(ctx, req, jsonrpc.AppendRequest(nil, req.id, req.call.Method, req.params))
	if err != nil {
		return nil
	}
	session := strings.Join(x.values(mcp.HeaderSessionID), "")
	ans, _ := once.receive(ctx, req, x, sink{})
	if session != "" {
		t.endSession(ctx, req, session)
	}
	return offered(ans)
}

// endSession closes the session of a diagnostic handshake.
func (t *netCarrier) endSession(ctx context.Context, req *request, session string) {
	hr := (&http.Request{Method: http.MethodDelete, URL: t.url, Host: t.url.Host, Header: t.header(req)}).WithContext(ctx)
	hr.Header.Set(mcp.HeaderSessionID, session)
	hr.Header.Set(mcp.HeaderProtocolVersion, string(mcp.V20251125))
	if resp, err := t.transport.RoundTrip(hr); err == nil {
		_ = resp.Body.Close()
	}
}
