package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/bridge/internal/redistest"
)

// TestReplicasShareWhatAClientSaysThatNeverListens: its log level reaches the store, and so
// the replicas that know the session and those that have yet to.
func TestReplicasShareWhatAClientSaysThatNeverListens(t *testing.T) {
	var level atomic.Value
	answers := canned(http.StatusNotFound, map[string]string{
		"server/discover": strings.Replace(discovered, `"tools":{}`, `"tools":{},"logging":{}`, 1),
		"tools/call":      `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","content":[{"type":"text","text":"done"}]}}`,
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Mcp-Method") == "tools/call" {
			_, rest, _ := strings.Cut(string(body), `/logLevel":"`)
			said, _, _ := strings.Cut(rest, `"`)
			level.Store(said)
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		answers.ServeHTTP(w, r)
	}))
	defer server.Close()
	redis := redistest.Start(t)
	args := []string{"--upstream", server.URL, "--store.url", "redis://" + redis.Addr(), "--store.keys", keyFile(t), "--replica.listen", "127.0.0.1:0"}
	on := []*killable{launch(t, args...), launch(t, args...)}
	session := on[0].request(http.MethodPost, initialize).Header.Get("Mcp-Session-Id")
	on[0].session, on[1].session = session, session
	const callTool = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","arguments":{}}}`
	for _, k := range on { // both know the session
		k.status(http.MethodPost, callTool)
	}
	if status := on[0].status(http.MethodPost, `{"jsonrpc":"2.0","id":3,"method":"logging/setLevel","params":{"level":"error"}}`); status != http.StatusOK {
		t.Fatalf("setLevel answers %d", status)
	}
	third := launch(t, args...)
	third.session = session
	for i, k := range []*killable{third, on[1], on[0]} {
		if k.status(http.MethodPost, callTool); level.Load() != "error" {
			t.Errorf("replica %d tells the server the level %q", i, level.Load())
		}
	}
}
