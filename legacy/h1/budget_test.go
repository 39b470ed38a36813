package h1

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// inMemory is a connection without a network: what a benchmark sees on it is the
// server's own. It serves one exchange at a time, and knows no deadlines.
type inMemory struct {
	requests chan []byte
	rest     []byte
	end      []byte // how the last piece of a response ends
	answered chan struct{}
	closed   chan struct{}
	once     sync.Once
}

func (c *inMemory) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		select {
		case c.rest = <-c.requests:
		case <-c.closed:
			return 0, io.EOF
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *inMemory) Write(p []byte) (int, error) {
	if bytes.HasSuffix(p, c.end) {
		c.answered <- struct{}{}
	}
	return len(p), nil
}

func (c *inMemory) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

func (*inMemory) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (*inMemory) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (*inMemory) SetDeadline(time.Time) error      { return nil }
func (*inMemory) SetReadDeadline(time.Time) error  { return nil }
func (*inMemory) SetWriteDeadline(time.Time) error { return nil }

// exchange brings a request, and waits for the response.
func (c *inMemory) exchange(request []byte) (ok bool) {
	select {
	case c.requests <- request:
	case <-c.closed:
		return false
	}
	select {
	case <-c.answered:
		return true
	case <-c.closed:
		return false
	}
}

// exchanges returns a function that has h serve a call on a kept connection.
func exchanges(t testing.TB, h http.HandlerFunc, end string) func() {
	c := &inMemory{requests: make(chan []byte), end: []byte(end), answered: make(chan struct{}, 1), closed: make(chan struct{})}
	s := New(having(h), &http.Server{})
	s.ServeConn(c)
	t.Cleanup(func() {
		_ = s.Close()
		<-s.empty
	})
	request := []byte(post(`{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}`))
	return func() {
		if !c.exchange(request) {
			t.Error("the connection was closed")
		}
	}
}

// having returns a handler that reads the request's body first, without memory of
// its own.
func having(h http.HandlerFunc) http.HandlerFunc {
	space := make([]byte, 512)
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadFull(r.Body, space[:r.ContentLength]); err != nil {
			panic(http.ErrAbortHandler)
		}
		h(w, r)
	}
}

var (
	inMemoryAnswer = []byte(`{"jsonrpc":"2.0","id":17,"result":{"content":[{"type":"text","text":"hello"}]}}`)
	inMemoryEvent  = []byte("event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n")
	typeEvents     = []string{"text/event-stream"}
)

func answerJSON(w http.ResponseWriter, _ *http.Request) {
	w.Header()["Content-Type"] = typeJSON
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(inMemoryAnswer)
}

func answer202(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusAccepted)
}

// answerEvents returns a handler that streams, with a flush for each event.
func answerEvents(n int, watched bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if watched {
			_ = r.Context().Done()
		}
		w.Header()["Content-Type"] = typeEvents
		w.WriteHeader(http.StatusOK)
		for range n {
			_, _ = w.Write(inMemoryEvent)
			w.(http.Flusher).Flush()
		}
	}
}

// inMemoryCases are exchanges with their budgets. The ends are those of a JSON
// text, of a head, and of the last chunk.
var inMemoryCases = []struct {
	name, end string
	max       float64
	handler   http.HandlerFunc
}{
	{"answer in JSON", "}", 4, answerJSON},
	{"202", "\r\n\r\n", 2, answer202},
	{"one event", "0\r\n\r\n", 4, answerEvents(1, false)},
	{"ten events", "0\r\n\r\n", 4, answerEvents(10, false)},
	{"ten events, client watched", "0\r\n\r\n", 9, answerEvents(10, true)},
}

// BenchmarkInMemory is the server's own share of one call on a kept connection.
func BenchmarkInMemory(b *testing.B) {
	for _, tt := range inMemoryCases {
		b.Run(tt.name, func(b *testing.B) {
			exchange := exchanges(b, tt.handler, tt.end)
			b.ReportAllocs()
			for b.Loop() {
				exchange()
			}
		})
	}
}

func TestAllocationBudget(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	for _, tt := range inMemoryCases {
		t.Run(tt.name, func(t *testing.T) {
			exchange := exchanges(t, tt.handler, tt.end)
			if got := testing.AllocsPerRun(200, exchange); got > tt.max {
				t.Errorf("%v allocations, budget %v", got, tt.max)
			}
		})
	}
}
