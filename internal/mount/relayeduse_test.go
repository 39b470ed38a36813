package mount

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/negotiate"
)

// inBubble puts a handler behind connections in memory, which a bubble can wait for, and returns how to dial them.
func inBubble(handler http.Handler) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go serveConn(far, handler)
		return near, nil
	}
}

// serveConn serves the requests of a connection, one after the other.
func serveConn(conn net.Conn, handler http.Handler) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		resp := w.Result()
		resp.ContentLength = int64(w.Body.Len())
		if resp.Write(conn) != nil {
			return
		}
	}
}

// A stream that stays open, or a call that lasts, longer than a session may be unused: its client got 404 for the next
// request.
func TestARelayedSessionWithARequestUnderWayIsInUse(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		synctest.Test(t, func(t *testing.T) { lasts(t, method) })
	}
}

func lasts(t *testing.T, method string) {
	d := &diary{open: map[string]bool{}}
	opt := over("http://server.example/mcp")
	opt.DropAuthorization, opt.Legacy.IdleTimeout = true, time.Minute
	opt.Upstream.Dial = inBubble(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Lasts") != "" {
			time.Sleep(90 * time.Second)
		}
		d.ServeHTTP(w, r)
	}))
	m, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	ask := func(method, session, body, lasts string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest(method, "http://localhost/mcp", strings.NewReader(body)), httptest.NewRecorder()
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("X-Lasts", lasts)
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		m.ServeHTTP(w, r)
		return w
	}
	opened := ask(http.MethodPost, "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, "")
	session := opened.Header().Get("Mcp-Session-Id")
	if session == "" {
		t.Fatalf("it opens nothing: %d %s", opened.Code, opened.Body)
	}
	over := make(chan int, 1)
	go func() {
		over <- ask(method, session, map[string]string{http.MethodPost: listTools}[method], "long").Code
	}()
	time.Sleep(80 * time.Second)
	if w := ask(http.MethodPost, session, listTools, ""); w.Code != http.StatusOK {
		t.Errorf("%s: while it lasts a call gets %d %s", method, w.Code, w.Body)
	}
	if code := <-over; code != http.StatusOK {
		t.Errorf("%s: it gets %d itself", method, code)
	}
	time.Sleep(59 * time.Second)
	if w := ask(http.MethodPost, session, listTools, ""); w.Code != http.StatusOK {
		t.Errorf("%s: after its end a call gets %d %s", method, w.Code, w.Body)
	}
	time.Sleep(61 * time.Second)
	if w := ask(http.MethodPost, session, listTools, ""); w.Code != http.StatusNotFound {
		t.Errorf("%s: when it was idle a call gets %d", method, w.Code)
	}
}

// A session of which the bridge would know nothing is not opened at the server: nobody would find it.
func TestASessionThatCouldNotBeRememberedIsNotOpened(t *testing.T) {
	for era, dual := range map[string]bool{"legacy": false, "dual-era": true} {
		d, server := newDiary(t, dual)
		opt := over(server)
		opt.Relay, opt.DropAuthorization, opt.Legacy.MaxSessions = negotiate.RelayAlways, true, 1
		_, url := serve(t, opt)
		alice := diarist(t, url, "alice")
		session := alice.opens()
		if status := alice.status(session); status != http.StatusOK {
			t.Fatalf("%s: it gets %d", era, status)
		}
		status, body := diarist(t, url, "bob").does(http.MethodPost, "", `{"jsonrpc":"2.0","id":5,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
		d.mu.Lock()
		open := len(d.open)
		d.mu.Unlock()
		if status != http.StatusServiceUnavailable || !strings.Contains(body, `"id":5`) || !strings.Contains(body, "limits.sessions") || open != 1 {
			t.Errorf("%s: while all are in use another one gets %d %s, and %d are open", era, status, body, open)
		}
		if status := alice.status(session); status != http.StatusOK {
			t.Errorf("%s: afterwards it gets %d", era, status)
		}
	}
}
