package edge

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/internal/testmode"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait; reaching it is a failure.
const patience = 20 * time.Second

// diary collects the log.
type diary struct {
	mu    sync.Mutex
	text  strings.Builder
	grown chan struct{}
}

func newDiary() *diary { return &diary{grown: make(chan struct{}, 1)} }

func (d *diary) Write(line []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case d.grown <- struct{}{}:
	default:
	}
	return d.text.Write(line)
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

// expect waits until the log says text.
func (d *diary) expect(t *testing.T, text string) {
	t.Helper()
	deadline := time.After(patience)
	for !strings.Contains(d.String(), text) {
		select {
		case <-d.grown:
		case <-deadline:
			t.Fatalf("the log does not say %q but\n%s", text, d)
		}
	}
}

func logTo(d *diary) zerolog.Logger { return zerolog.New(d) }

// from answers with the address that a request is taken to come from.
var from = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_, _ = w.Write([]byte(r.RemoteAddr))
})

// serve opens an edge in front of handler and serves it until the test ends.
func serve(t *testing.T, handler http.Handler, opt Options) (*Edge, *diary) {
	t.Helper()
	log := newDiary()
	opt.Log = logTo(log)
	opt.StandardHTTP = opt.StandardHTTP || testmode.StandardHTTP()
	if opt.Listen == "" {
		opt.Listen = "127.0.0.1:0"
	}
	e, err := Open(t.Context(), handler, opt)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- e.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		e.Shutdown(ctx)
		if err := <-served; err != http.ErrServerClosed {
			t.Errorf("serving ended with %v", err)
		}
	})
	return e, log
}

func dial(t *testing.T, e *Edge) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", e.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// get asks once on a connection and returns the status line; "" when there is none.
func get(conn net.Conn, path string) string {
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := conn.Write([]byte("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
		return ""
	}
	line, _ := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line)
}
