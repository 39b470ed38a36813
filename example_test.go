package mcpbridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	mcpbridge "github.com/mcpbridge/bridge"
	"github.com/mcpbridge/bridge/sessions/store"
)

// A modern-only server, made of canned answers.
func modernServer() *httptest.Server {
	results := map[string]string{
		"server/discover": `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},
			"serverInfo":{"name":"weather","version":"1"},"ttlMs":60000,"cacheScope":"public"}`,
		"tools/list": `{"resultType":"complete","tools":[{"name":"forecast","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"public"}`,
	}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var msg struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&msg)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, msg.ID, results[msg.Method])
	}))
}

// post sends one message as a client of 2025-06-18 does.
func post(url, session, message string) (string, *http.Response) {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(message))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return string(body), resp
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`

// An old client opens a session with a server that knows no sessions.
func ExampleNew() {
	server := modernServer()
	defer server.Close()

	bridge, err := mcpbridge.New(mcpbridge.Options{Upstream: server.URL})
	if err != nil {
		panic(err)
	}
	defer bridge.Close()
	front := httptest.NewServer(bridge)
	defer front.Close()

	_, opened := post(front.URL, "", initialize)
	session := opened.Header.Get("Mcp-Session-Id")
	tools, _ := post(front.URL, session, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	fmt.Println("session:", session != "")
	fmt.Println("forecast:", strings.Contains(tools, `"forecast"`))
	// Output:
	// session: true
	// forecast: true
}

// The endpoint is one handler among others: behind the program's own
// authentication, with a path for clients of HTTP+SSE, and an orderly end.
func ExampleBridge_Shutdown() {
	server := modernServer()
	defer server.Close()

	user := func(r *http.Request) string {
		name, _, _ := r.BasicAuth()
		return name
	}
	bridge, err := mcpbridge.New(mcpbridge.Options{
		Upstream:          server.URL,
		DropAuthorization: true, // passwords are not for the server
		Principal:         user, // whose session it is
	})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", bridge)
	mux.Handle("/sse", bridge.SSE("/messages"))
	mux.Handle("/messages", bridge.Messages())
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user(r) == "" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	defer front.Close()

	_, stranger := post(front.URL+"/mcp", "", initialize)
	_, friend := post(strings.Replace(front.URL, "://", "://ada:secret@", 1)+"/mcp", "", initialize)
	fmt.Println(stranger.StatusCode, friend.StatusCode)

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println(bridge.Shutdown(ctx))
	// Output:
	// 401 200
	// <nil>
}

// Sessions that outlive a Bridge: the next one with the same store goes on with them. The store here is in
// memory; one of your own is whatever passes package sessionstest.
func ExampleOptions_store() {
	server := modernServer()
	defer server.Close()

	sealed, err := store.NewSealed(store.NewMemory(1000), []store.Key{{ /* 32 random bytes */ }})
	if err != nil {
		panic(err)
	}
	options := mcpbridge.Options{Upstream: server.URL, Store: sealed}
	session := ""
	for range 2 {
		bridge, err := mcpbridge.New(options)
		if err != nil {
			panic(err)
		}
		front := httptest.NewServer(bridge)
		if session == "" {
			_, opened := post(front.URL, "", initialize)
			session = opened.Header.Get("Mcp-Session-Id")
		}
		tools, resp := post(front.URL, session, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
		fmt.Println(resp.StatusCode, strings.Contains(tools, `"forecast"`))
		front.Close()
		bridge.Close()
	}
	// Output:
	// 200 true
	// 200 true
}
