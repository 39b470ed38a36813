package edge

import (
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/rs/zerolog"
)

// table is a socket whose connections have numbers like file descriptors: the lowest that is free.
type table struct {
	net.Listener
	mu      sync.Mutex
	taken   map[int]bool
	highest int
}

type numbered struct {
	net.Conn
	n     int
	close func() error
}

func (n *numbered) Close() error { return n.close() }

func (b *table) Accept() (net.Conn, error) {
	conn, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for b.taken[n] {
		n++
	}
	b.taken[n], b.highest = true, max(b.highest, n)
	return &numbered{conn, n, sync.OnceValue(func() error {
		b.mu.Lock()
		delete(b.taken, n)
		b.mu.Unlock()
		return conn.Close()
	})}, nil
}

// full serves a crowd with so many numbers taken already, of which 128 are for clients, and 64 more for
// answering newcomers.
func full(t *testing.T, taken int) (address string, b *table) {
	t.Helper()
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b = &table{Listener: socket, taken: map[int]bool{}}
	for n := range taken {
		b.taken[n] = true
	}
	healthy := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	c := newCrowd(b, nil, func(l net.Listener) net.Listener { return l }, healthy, zerolog.Nop())
	c.room, c.last = 128, 192
	c.number = func(conn net.Conn) int { return conn.(*numbered).n }
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			if _, err := c.Accept(); err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { _ = socket.Close(); <-over; c.end() })
	return socket.Addr().String(), b
}

func reach(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Of newcomers whom there is no room for, who has been there for longest makes room for the next one: those who
// say nothing, or never come to an end, keep no probe out.
func TestHealthProbesAreAnsweredBesideNewcomersThatSayNothing(t *testing.T) {
	for _, said := range []string{"", "POST", "GET /mcp HTTP/1.1\r\nHost: x\r\n"} {
		address, b := full(t, 128)
		for range 200 {
			_, _ = reach(t, address).Write([]byte(said))
		}
		for path, want := range map[string]string{"/mcp": "HTTP/1.1 503 Service Unavailable", "/healthz": "HTTP/1.1 200 OK", "/readyz": "HTTP/1.1 200 OK"} {
			if got := get(reach(t, address), path); got != want {
				t.Errorf("beside those who say %q: %s gets %q, want %q", said, path, got, want)
			}
		}
		b.mu.Lock()
		if b.highest > 192 {
			t.Errorf("beside those who say %q: the number %d was taken, which is kept for the server", said, b.highest)
		}
		b.mu.Unlock()
	}
}

// Where others have taken the numbers for answers, newcomers have those places that they had before, and take no
// more.
func TestNewcomersTakeNoNumbersBeyondTheirs(t *testing.T) {
	address, b := full(t, 187)
	for range 50 {
		reach(t, address)
	}
	if got := get(reach(t, address), "/healthz"); got != "HTTP/1.1 200 OK" {
		t.Errorf("a probe gets %q", got)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.taken) > 192 || b.highest > 192 {
		t.Errorf("%d numbers are taken, the highest is %d", len(b.taken), b.highest)
	}
}
