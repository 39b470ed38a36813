package relay

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/hop"
	"github.com/mcpbridge/bridge/jsonrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is what a conversation says to: the Pusher of a connection, and the
// Reply of each request.
type client struct {
	pushed chan string
	ended  chan error
}

func newClient() *client { return &client{make(chan string, 64), make(chan error, 4)} }

func (c *client) Detached(uint64, time.Time)            {}
func (c *client) Changed()                              {}
func (c *client) Reaches() bool                         { return true }
func (c *client) Accepted(downstream.Caller) bool       { return false }
func (c *client) Push(_ string, msg downstream.Message) { c.pushed <- string(msg.AppendTo(nil)) }
func (c *client) End(why error)                         { c.ended <- why }

// reply keeps what one request got.
type reply struct {
	deaf bool // nothing but the response reaches it
	left bool // its client is not there now
	gone bool // and will not come back

	mu      sync.Mutex
	sent    []string
	refused *downstream.Refusal
	final   string
	done    chan struct{}
}

func newReply() *reply { return &reply{done: make(chan struct{})} }

func (*reply) Checkpointer() downstream.Checkpointer { return nil }

func (r *reply) Interactive() bool            { return !r.deaf }
func (r *reply) Queue(msg downstream.Message) { r.Send(msg) }
func (r *reply) Flush()                       {}
func (r *reply) Abandon()                     { r.Finish(downstream.Message{Text: []byte("abandoned")}) }
func (r *reply) Reachable() bool              { return !r.gone }
func (r *reply) Attached() bool               { return !r.left && !r.gone }
func (r *reply) Delivered() bool              { return !r.left && !r.gone }
func (r *reply) Address() downstream.Address  { return downstream.Address{} }
func (r *reply) Continue(f func())            { go f() }
func (r *reply) Outlast() func()              { return func() {} }

func (r *reply) Send(msg downstream.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, string(msg.AppendTo(nil)))
}

func (r *reply) Finish(msg downstream.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.final = string(msg.AppendTo(nil))
	close(r.done)
}

func (r *reply) Refuse(refusal *downstream.Refusal) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused = refusal
	close(r.done)
	return true
}

// wait returns the response.
func (r *reply) wait(t *testing.T) string {
	t.Helper()
	select {
	case <-r.done:
		return r.final
	case <-t.Context().Done():
		t.Fatal("no response")
		return ""
	}
}

func message(t *testing.T, text string) jsonrpc.Message {
	t.Helper()
	msg, err := jsonrpc.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return msg
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`

// open opens a conversation with a server.
func open(t *testing.T, opt Options, push downstream.Pusher) (downstream.Conversation, []byte, error) {
	t.Helper()
	r := New(opt)
	conv, result, err := r.Open(t.Context(), downstream.Caller{Authorization: "Bearer mine"}, message(t, initialize), push)
	t.Cleanup(func() {
		if conv != nil {
			conv.Close(context.Canceled)
		}
		r.Close()
	})
	return conv, result, err
}

// ask makes a request and returns where its answer will be.
func ask(t *testing.T, conv downstream.Conversation, text string) *reply {
	t.Helper()
	out := newReply()
	conv.Serve(t.Context(), downstream.Caller{Authorization: "Bearer mine"}, downstream.NewRequest(message(t, text)), out)
	return out
}

// over is a server behind a handler.
func over(t *testing.T, h http.HandlerFunc) *HTTP {
	t.Helper()
	front := httptest.NewServer(h)
	u, err := url.Parse(front.URL + "/mcp?key=1")
	if err != nil {
		t.Fatal(err)
	}
	s := NewHTTP(HTTPOptions{URL: u, Policy: hop.Policy{Header: http.Header{"X-Own": {"1"}}}, MaxMessage: 4096})
	t.Cleanup(func() { s.Close(); front.CloseClientConnections(); front.Close() })
	return s
}
