//go:build unix

package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/mcp"
)

// Which HTTP speaks shows in whose goroutines carry a call: those of either hop.
func TestHTTPSettingHoldsOnBothHops(t *testing.T) {
	downstream := map[string]string{"lean": "legacy/h1.(*conn).serve", "standard": "net/http.(*conn).serve"}
	upstream := map[string]string{"lean": "upstream/h1.(*Client).Do", "standard": "net/http.(*Transport).RoundTrip"}
	for setting, other := range map[string]string{"lean": "standard", "standard": "lean"} {
		t.Run(setting, func(t *testing.T) {
			stacks := stacksOfACall(t, "--http", setting)
			for _, hop := range []map[string]string{downstream, upstream} {
				if !strings.Contains(stacks, hop[setting]) || strings.Contains(stacks, hop[other]) {
					t.Errorf("%s is there: %t, %s: %t", hop[setting], strings.Contains(stacks, hop[setting]), hop[other], strings.Contains(stacks, hop[other]))
				}
			}
		})
	}
}

// stacksOfACall returns the goroutines of a program while a server thinks about a call.
func stacksOfACall(t *testing.T, args ...string) string {
	arrived, over := make(chan struct{}, 1), make(chan struct{})
	usual := canned(http.StatusNotFound, map[string]string{mcp.MethodDiscover: discovered})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(mcp.HeaderMethod) != mcp.MethodToolsCall {
			usual.ServeHTTP(w, r)
			return
		}
		arrived <- struct{}{}
		<-over
	}))
	defer server.Close()
	defer close(over)
	k := launch(t, append([]string{"--upstream", server.URL}, args...)...)
	called := make(chan struct{})
	kept := &http.Transport{} // the lean server leaves those that want to close to net/http
	defer kept.CloseIdleConnections()
	go func() {
		defer close(called)
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, k.url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if resp, err := (&http.Client{Transport: kept}).Do(r); err == nil {
			resp.Body.Close()
		}
	}()
	select {
	case <-arrived:
	case <-time.After(patience):
		t.Fatal("the server gets no call")
	}
	_ = k.process.Process.Signal(syscall.SIGQUIT)
	<-k.silent
	<-called
	return k.said.String()
}
