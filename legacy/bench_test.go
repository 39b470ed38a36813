package legacy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
)

const benchCall = `{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello, world"}}}`

// recorder is a ResponseWriter that costs nothing.
type recorder struct {
	h      http.Header
	status int
	n      int
}

func (r *recorder) Header() http.Header         { return r.h }
func (r *recorder) Write(b []byte) (int, error) { r.n += len(b); return len(b), nil }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Flush()                      {}

type body struct{ bytes.Reader }

func (*body) Close() error { return nil }

// posts returns a function that sends msg through the handler again and again.
func posts(t testing.TB, h *HTTP, msg string) (send func() int) {
	t.Helper()
	w := &recorder{h: http.Header{}}
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	r := (&http.Request{Method: http.MethodPost, Host: "localhost", Header: header}).WithContext(context.Background())
	data := &body{}
	r.Body = data
	send = func() int {
		clear(w.h)
		data.Reset([]byte(msg))
		r.ContentLength = int64(len(msg))
		h.ServeHTTP(w, r)
		return w.status
	}
	data.Reset(nil)
	data.Reset([]byte(initialize(mcp.V20251125)))
	r.ContentLength = int64(len(initialize(mcp.V20251125)))
	h.ServeHTTP(w, r)
	header["Mcp-Session-Id"] = w.h["Mcp-Session-Id"]
	header["Mcp-Protocol-Version"] = []string{"2025-11-25"}
	return send
}

// fixedConv answers at once from memory.
type fixedConv struct {
	downstream.Conversation
	answer, note downstream.Message
	notes        int
}

func (*fixedConv) Version() mcp.Version       { return mcp.V20251125 }
func (*fixedConv) Look() observe.Conversation { return observe.Conversation{} }

func (*fixedConv) Watch(func(observe.Flow, downstream.Reply) downstream.Reply) {}
func (*fixedConv) Close(error)                                                 {}

func (*fixedConv) Notify(downstream.Caller, jsonrpc.Message)       {}
func (*fixedConv) Answer(downstream.Caller, jsonrpc.Message) error { return nil }
func (*fixedConv) Knows(downstream.Caller, jsonrpc.ID) bool        { return true }
func (*fixedConv) Owns(downstream.Caller, []byte) bool             { return true }

func (c *fixedConv) Serve(_ context.Context, _ downstream.Caller, _ downstream.Request, out downstream.Reply) {
	for range c.notes {
		out.Send(c.note)
	}
	out.Finish(c.answer)
}

type fixedBackend struct{ conv *fixedConv }

func (b fixedBackend) Open(context.Context, downstream.Caller, jsonrpc.Message, downstream.Pusher) (downstream.Conversation, []byte, error) {
	return b.conv, []byte(`{}`), nil
}
func (b fixedBackend) Stateless(downstream.Caller, mcp.Version) downstream.Conversation {
	return b.conv
}
func (fixedBackend) Modern() http.Handler                 { return nil }
func (fixedBackend) Connected() downstream.Conversation   { return nil }
func (b fixedBackend) Due(flow []byte) (time.Time, error) { return newFake().Due(flow) }
func (fixedBackend) Relayer() downstream.Relayer          { return nil }

func (b fixedBackend) Restore(context.Context, downstream.Caller, downstream.Caller, []byte, downstream.Pusher) (downstream.Conversation, error) {
	return b.conv, nil
}

var fixedAnswer = texted([]byte(`{"jsonrpc":"2.0","id":17,"result":{"content":[{"type":"text","text":"hello, world"}]}}`))

func BenchmarkPostJSON(b *testing.B) {
	h := NewHTTP(Options{}, fixedBackend{&fixedConv{answer: fixedAnswer}})
	defer h.Close()
	send := posts(b, h, benchCall)
	b.ReportAllocs()
	for b.Loop() {
		if send() != 200 {
			b.Fatal("failed")
		}
	}
}

func BenchmarkPostSSE(b *testing.B) {
	h := NewHTTP(Options{}, fixedBackend{&fixedConv{answer: fixedAnswer, note: downstream.Notification(mcp.NotificationMessage, nil), notes: 10}})
	defer h.Close()
	send := posts(b, h, benchCall)
	b.ReportAllocs()
	for b.Loop() {
		if send() != 200 {
			b.Fatal("failed")
		}
	}
}

func BenchmarkAnswer202(b *testing.B) {
	h := NewHTTP(Options{}, newFake())
	defer h.Close()
	send := posts(b, h, `{"jsonrpc":"2.0","id":"leg","result":{"action":"accept","content":{"ok":true}}}`)
	b.ReportAllocs()
	for b.Loop() {
		send()
	}
}

// TestPlainCallAllocatesLittle is the budget of this package for the hot path:
// the body, the exchange, the context, and the request's own share.
func TestPlainCallAllocatesLittle(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	r := testing.Benchmark(BenchmarkPostJSON)
	if got := r.AllocsPerOp(); got > 6 {
		t.Errorf("%d allocations, budget 6", got)
	}
	if got := r.AllocedBytesPerOp(); got > 1024 {
		t.Errorf("%d bytes, budget 1024", got)
	}
}

// TestAllocationBudget has no server around the handler: responses cost nothing,
// requests one allocation for their text.
func TestAllocationBudget(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for name, tt := range map[string]struct {
		max     float64
		backend downstream.Backend
		msg     string
	}{
		"answer in JSON":              {6, fixedBackend{&fixedConv{answer: fixedAnswer}}, benchCall},
		"answer after a note":         {16, fixedBackend{&fixedConv{answer: fixedAnswer, note: downstream.Notification(mcp.NotificationMessage, nil), notes: 1}}, benchCall},
		"answer after ten notes":      {18, fixedBackend{&fixedConv{answer: fixedAnswer, note: downstream.Notification(mcp.NotificationMessage, nil), notes: 10}}, benchCall},
		"client answers":              {6, fixedBackend{&fixedConv{}}, `{"jsonrpc":"2.0","id":"leg","result":{"action":"accept"}}`},
		"client sends a notification": {4, fixedBackend{&fixedConv{}}, `{"jsonrpc":"2.0","method":"notifications/initialized"}`},
	} {
		h := NewHTTP(Options{}, tt.backend)
		send, status := posts(t, h, tt.msg), 0
		if got := testing.AllocsPerRun(200, func() { status = send() }); got > tt.max {
			t.Errorf("%s: %v allocations, budget %v", name, got, tt.max)
		}
		if status/100 != 2 {
			t.Errorf("%s: status %d", name, status)
		}
		h.Close()
	}
}

// TestIdleSessionIsSmall measures what this package and its table keep for a
// session that has nothing going on. The conversation is the backend's.
func TestIdleSessionIsSmall(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	const n = 5000
	h := NewHTTP(Options{MaxSessions: n}, fixedBackend{&fixedConv{answer: fixedAnswer}})
	defer h.Close()
	w := &recorder{h: http.Header{}}
	open := func() {
		clear(w.h)
		r := &http.Request{Method: http.MethodPost, Host: "localhost", Header: http.Header{"Content-Type": {"application/json"}}}
		msg := []byte(initialize(mcp.V20251125))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(msg)), int64(len(msg))
		h.ServeHTTP(w, r)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range n {
		open()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	per := int64(after.HeapAlloc-before.HeapAlloc) / n
	t.Logf("%d bytes per idle session", per)
	if h.Sessions() != n || per > 800 {
		t.Errorf("%d bytes per idle session, budget 800 (%d sessions)", per, h.Sessions())
	}
}
