package streamable

import (
	"context"
	"errors"
	"net/url"
	"strconv"

	"github.com/mcpbridge/bridge/internal/buffers"
	"github.com/mcpbridge/bridge/internal/hop"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/upstream"
	"github.com/mcpbridge/bridge/upstream/h1"
)

// maxJoined is the size up to which a body is copied behind its header, so
// that both leave in one write, in bytes.
const maxJoined = 16 << 10

// headSize is room for a request's header, in bytes.
const headSize = 1 << 10

// leanCarrier posts over plain http on the calling goroutine.
type leanCarrier struct {
	opt    *Options
	client *h1.Client
	line   []byte // request line for the configured URL
	common []byte // header fields that are the same in every request
	policy hop.Policy
}

func newLeanCarrier(u *url.URL, opt *Options) *leanCarrier {
	t := &leanCarrier{opt: opt, line: requestLine(u), policy: opt.Policy()}
	t.client = h1.New(h1.Options{
		Network: "tcp", Addr: hostPort(u), Dial: opt.Dial, DialTimeout: opt.DialTimeout,
		HeaderTimeout: opt.HeaderTimeout, MaxIdle: opt.MaxIdle, IdleTimeout: opt.IdleTimeout,
	})
	b := appendField(nil, "Host", u.Host)
	b = appendField(b, "User-Agent", t.policy.UserAgent(opt.UserAgent))
	b = append(b, "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"...)
	t.policy.Configured(func(name, value string) { b = appendField(b, name, value) })
	t.common = b
	return t
}

func requestLine(u *url.URL) []byte {
	return []byte("POST " + u.RequestURI() + " HTTP/1.1\r\n")
}

// hostPort is the address to dial for an http URL.
func hostPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	return u.Host + ":80"
}

func appendField(b []byte, name, value string) []byte {
	b = append(b, name...)
	b = append(b, ": "...)
	b = append(b, value...)
	return append(b, "\r\n"...)
}

// reuses is true: the whole request is written when post returns.
func (t *leanCarrier) reuses() bool { return true }

func (t *leanCarrier) close() { t.client.Close() }

func (t *leanCarrier) post(ctx context.Context, req *request, body []byte) (exchange, error) {
	buf := buffers.Get(min(len(body), maxJoined) + headSize)
	defer buffers.Put(buf)
	wire := t.appendHead((*buf)[:0], req, len(body))
	out := h1.Request{Wire: wire, Body: body, Resend: upstream.ReadOnly(req.call.Method)}
	if len(body) <= maxJoined {
		out.Wire, out.Body = append(wire, body...), nil
	}
	*buf = out.Wire
	resp, err := t.client.Do(ctx, &out)
	if err != nil {
		return nil, t.classify(ctx, err)
	}
	return (*leanExchange)(resp), nil
}

// appendHead writes the request line and the header (B.2). Every value was
// checked or encoded before: none can break the message.
func (t *leanCarrier) appendHead(b []byte, req *request, length int) []byte {
	if req.target != nil {
		b = append(b, requestLine(req.target)...)
	} else {
		b = append(b, t.line...)
	}
	b = append(b, t.common...)
	b = appendField(b, mcp.HeaderProtocolVersion, req.version)
	b = appendField(b, mcp.HeaderMethod, req.call.Method)
	if req.named {
		b = append(append(b, mcp.HeaderName...), ": "...)
		b = append(req.appendName(b), "\r\n"...)
	}
	for _, f := range req.custom {
		b = appendField(b, f.Name, f.Value)
	}
	if auth := t.policy.Authorization(req.call.Authorization); auth != "" {
		b = appendField(b, "Authorization", auth)
	}
	t.policy.Made(req.call.Header, func(name, value string) { b = appendField(b, name, value) })
	b = append(b, "Content-Length: "...)
	b = strconv.AppendInt(b, int64(length), 10)
	return append(b, "\r\n\r\n"...)
}

// classify turns the lean client's error into a Failure.
func (t *leanCarrier) classify(ctx context.Context, err error) *upstream.Failure {
	failed, ok := errors.AsType[*h1.Error](err)
	if !ok {
		return classify(ctx, t.opt.origin(), err, true)
	}
	return classify(ctx, t.opt.origin(), failed.Err, failed.Sent)
}

// leanExchange makes a lean response an exchange.
type leanExchange h1.Response

func (x *leanExchange) lean() *h1.Response          { return (*h1.Response)(x) }
func (x *leanExchange) Read(p []byte) (int, error)  { return x.lean().Read(p) }
func (x *leanExchange) status() int                 { return x.lean().Status() }
func (x *leanExchange) version() observe.HTTP       { return observe.HTTP11 }
func (x *leanExchange) media() string               { return x.lean().Media() }
func (x *leanExchange) length() int64               { return x.lean().Length() }
func (x *leanExchange) values(name string) []string { return x.lean().Values(name) }
func (x *leanExchange) arriving() bool              { return x.lean().Arriving() }
func (x *leanExchange) finish()                     { x.lean().Finish() }
func (x *leanExchange) abort()                      { x.lean().Abort() }
