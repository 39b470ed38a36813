package mount

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/socket"
	"github.com/mcpbridge/bridge/observe"
)

// What is passed through keeps as few idle connections to the server as what is translated.
func TestWhatIsPassedThroughKeepsFewIdleConnections(t *testing.T) {
	const many, few = 6, 2
	begun, goOn, closed := make(chan struct{}), make(chan struct{}), make(chan struct{}, many)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { begun <- struct{}{}; <-goOn }))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	opt := over(server.URL)
	opt.Upstream.MaxIdle = few
	r, err := newRemote(&opt, &verdicts{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.proxy.Close)
	for range many {
		go r.proxy.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, server.URL, strings.NewReader("{}")))
	}
	for range many {
		<-begun
	}
	close(goOn)
	for range many - few {
		select {
		case <-closed:
		case <-patience(t).Done():
			t.Fatal("they stay open")
		}
	}
}

// Who is about to use an idle connection again looks whether the server has closed it, also where
// connections are counted.
func TestACountedConnectionShowsThatItsServerHasLeft_D15(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	m, opt := &Mount{}, over("http://"+server.Addr().String())
	opt.Watch = struct{ observe.Watcher }{}
	conn, err := m.dialer(&opt)(t.Context(), "tcp", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Connections(); got != 1 {
		t.Errorf("%d connections are counted", got)
	}
	other, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	other.Close()
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	looked := socket.New(conn)
	if !looked.Peekable() {
		t.Fatal("nobody can look at it")
	}
	for _, open := looked.Peek(make([]byte, 1)); open; _, open = looked.Peek(make([]byte, 1)) {
		if t.Context().Err() != nil {
			t.Fatal("it stays open")
		}
	}
	conn.Close()
	if got := m.Connections(); got != 0 {
		t.Errorf("%d connections are counted after it was closed", got)
	}
}
