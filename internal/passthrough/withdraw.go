package passthrough

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

// withdrawTime bounds telling a server that nobody waits for it any more.
const withdrawTime = 2 * time.Second

// withdraw tells a legacy server that nobody waits any more for what it was asked: to it the end of a
// connection is none of a request's. To a modern one it is. The client learns of the end afterwards: it may use
// the same id again then, for a request that this would cancel. Without a session the server could not tell whose
// request is meant, and might end somebody else's.
func (p *Proxy) withdraw(of *passage) {
	r := of.in
	if r.Method != http.MethodPost || isModern(r) || r.Header.Get(mcp.HeaderSessionID) == "" {
		return
	}
	header := r.Header.Clone()
	p.opt.Policy.Pass(header)
	header.Del("Content-Length")
	ctx, cancel := context.WithTimeout(p.closing, withdrawTime)
	defer cancel()
	for _, id := range of.due().ids {
		p.cancelled(ctx, header, id)
	}
}

// cancelled sends the cancellation of one request. Nobody can be told that it did not arrive.
func (p *Proxy) cancelled(ctx context.Context, header http.Header, id jsonrpc.ID) {
	params := append(append([]byte(`{"requestId":`), id...), `,"reason":"timed out"}`...)
	body := jsonrpc.AppendNotification(nil, mcp.NotificationCancelled, params)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.opt.URL.String(), bytes.NewReader(body))
	if err != nil {
		return // impossible: requests go there
	}
	req.Header = header.Clone()
	resp, err := p.sends.RoundTrip(req)
	if err != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, resp.Body, lastDrained) // which leaves a connection to use again
	_ = resp.Body.Close()
}

// lastDrained is how much of what a server says to that is read, in bytes.
const lastDrained = 4 << 10
