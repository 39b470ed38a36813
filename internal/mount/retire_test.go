package mount

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
)

// A mount that is retired takes no request of a session that it relayed: the one in its place relays it, and where there is
// none the client learns that the session is over.
func TestARetiredMountHoldsNoRelayedSession(t *testing.T) {
	begun, gone := make(chan struct{}, 1), make(chan struct{}, 1)
	m, base := serve(t, over(newHanging(t, true, begun, gone)))
	post := func(body string) {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, base, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Mcp-Session-Id", "s")
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	}
	post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	if !m.Holds("s") {
		t.Fatal("the session is not relayed")
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		post(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":{}}}`)
	}()
	<-begun
	over := make(chan error, 1)
	ctx, cut := context.WithCancel(t.Context())
	go func() { over <- m.Retire(ctx) }()
	for most := patience(t); m.Holds("s") && most.Err() == nil; { // until it has begun
		runtime.Gosched()
	}
	if m.Holds("s") {
		t.Error("it is held while a call of another one runs")
	}
	if m.Recall(httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", http.NoBody), "s") {
		t.Error("it comes back to a mount that takes no request")
	}
	cut()
	<-over
	<-gone
	<-answered
}

// A request without a session keeps its mount like a session does: with the mount it would be cut off.
func TestARequestWithoutASessionKeepsItsMount(t *testing.T) {
	begun, gone := make(chan struct{}, 1), make(chan struct{}, 1)
	m, base := serve(t, over(newHanging(t, false, begun, gone)))
	ctx, leave := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, base, strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":{}}}`))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-begun
	if m.Busy() == 0 {
		t.Error("nothing keeps the mount")
	}
	leave()
	m.Close()
	<-gone
	<-over
}
