package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/mcp"
)

// unhurried is a server with a call that takes until release is closed, and one that asks.
func unhurried(t *testing.T) (url string, called, release chan struct{}) {
	t.Helper()
	called, release = make(chan struct{}, 1), make(chan struct{})
	asks := canned(http.StatusNotFound, map[string]string{mcp.MethodToolsCall: `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"input_required","requestState":"s","inputRequests":{"q":{"method":"elicitation/create","params":{"mode":"form","message":"Name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}}}}`})
	answers := canned(http.StatusNotFound, map[string]string{mcp.MethodDiscover: discovered, mcp.MethodToolsList: `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","tools":[]}}`,
		mcp.MethodToolsCall: `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","content":[{"type":"text","text":"done"}]}}`})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		switch {
		case r.Header.Get("Mcp-Name") == "slow":
			called <- struct{}{}
			select {
			case <-release:
			case <-r.Context().Done():
				return
			}
		case r.Header.Get("Mcp-Name") == "ask" && !strings.Contains(string(body), "inputResponses"):
			asks.ServeHTTP(w, r)
			return
		}
		answers.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, called, release
}

// One slow call at the end of timeouts.handover keeps its own session only: all others go on under the new settings
// at once, or, where sessions end with their process, begin anew; and questions can be answered.
func TestASlowCallAtTheEndOfTheHandoverHoldsUpNobodyElse(t *testing.T) {
	for kind, store := range map[string]string{"in memory": "memory:", "in a file": "file:" + filepath.Join(t.TempDir(), "s.db")} {
		t.Run(kind, func(t *testing.T) {
			kept := kind != "in memory"
			url, called, release := unhurried(t)
			head := "listen: 127.0.0.1:0\nstore: {url: '" + store + "'}\nupstream: '" + url + "'\n"
			r := startWithFile(t, head)
			busy, idle := r.session("/mcp"), r.session("/mcp")
			asked := (&killable{t: t, url: "http://" + r.address + "/mcp"})
			asked.session = asked.request(http.MethodPost, initializeAsking).Header.Get(mcp.HeaderSessionID)
			stream := asked.follow(asked.request(http.MethodPost, callAsk))
			question := stream.message()
			slow := make(chan string, 1)
			go func() {
				resp := r.request(http.MethodPost, "/mcp", busy, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{}}}`)
				text, _ := io.ReadAll(resp.Body)
				slow <- string(text)
			}()
			<-called
			if !kept {
				asked.answer(question["id"].(string)) // in memory it would wait there
				wantDone(t, stream.message())
			}
			r.reload(head+"timeouts: {handover: 0s, drain: 10m}\nheaders: {X-Team: '7'}\n", "timeouts.handover is over")
			until := time.Now().Add(patience)
			status := func(session string, is int) {
				t.Helper()
				got := 0
				for got != is && time.Now().Before(until) {
					got = r.request(http.MethodPost, "/mcp", session, listTools).StatusCode
				}
				if got != is {
					t.Errorf("it gets %d, want %d", got, is)
				}
			}
			if kept {
				status(idle, http.StatusOK)
				status(asked.session, http.StatusOK)
				asked.answer(question["id"].(string))
				if strings.Contains(r.errors.String(), "the store of sessions fails") {
					t.Errorf("the store is blamed:\n%s", r.errors)
				}
			} else {
				status(idle, http.StatusNotFound)
			}
			status(busy, http.StatusServiceUnavailable)
			close(release)
			if text := <-slow; !strings.Contains(text, `"done"`) {
				t.Errorf("the slow call gets %s", text)
			}
		})
	}
}
