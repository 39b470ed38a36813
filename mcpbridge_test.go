package mcpbridge_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	mcpbridge "github.com/mcpbridge/bridge"
	"github.com/mcpbridge/bridge/sessions/store"
)

func TestOptionsThatNameNoServerOrTwoAreRefused(t *testing.T) {
	for name, opt := range map[string]mcpbridge.Options{
		"none": {}, "two": {Upstream: "http://127.0.0.1:1", Command: []string{"x"}}, "no URL": {Upstream: "127.0.0.1:1"},
	} {
		if _, err := mcpbridge.New(opt); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestACommandIsServedOverStreams(t *testing.T) {
	b, err := mcpbridge.New(mcpbridge.Options{Command: []string{"no-such-program-anywhere"}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var out strings.Builder
	if err := b.ServeStdio(t.Context(), io.Reader(strings.NewReader(initialize+"\n")), &out); err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "no such program") {
		t.Errorf("the client is told %s", out.String())
	}
}

func TestMemoryThatPeersTakeIsBounded(t *testing.T) {
	server := modernServer()
	defer server.Close()
	for name, tt := range map[string]struct {
		memory int64
		want   int
	}{"small": {64 << 10, http.StatusServiceUnavailable}, "unbounded": {-1, http.StatusOK}, "default": {0, http.StatusOK}} {
		b, err := mcpbridge.New(mcpbridge.Options{Upstream: server.URL, Memory: tt.memory, StandardHTTP: true, NoPark: true})
		if err != nil {
			t.Fatal(err)
		}
		front := httptest.NewServer(b)
		large := strings.Replace(initialize, `"name":"c"`, `"name":"`+strings.Repeat("c", 60<<10)+`"`, 1)
		if _, resp := post(front.URL, "", large); resp.StatusCode != tt.want {
			t.Errorf("%s: %s", name, resp.Status)
		}
		b.Close()
		front.Close()
	}
}

// What a store keeps goes to the server that it was kept for, however its address is written, and to
// no other one that is mounted in its place.
func TestWhatIsKeptBelongsToItsServer(t *testing.T) {
	a, b := modernServer(), modernServer()
	defer a.Close()
	defer b.Close()
	kept := store.NewMemory(100)
	session := ""
	for _, tt := range []struct {
		upstream string
		want     int
	}{{a.URL + "/", http.StatusOK}, {b.URL, http.StatusNotFound}, {a.URL + "/other", http.StatusNotFound}, {strings.ToUpper(a.URL) + "?key=1", http.StatusOK}} {
		bridge, err := mcpbridge.New(mcpbridge.Options{Upstream: tt.upstream, Store: kept, StoreScope: "/mcp"})
		if err != nil {
			t.Fatal(err)
		}
		front := httptest.NewServer(bridge)
		if session == "" {
			_, resp := post(front.URL, "", initialize)
			session = resp.Header.Get("Mcp-Session-Id")
		}
		if _, resp := post(front.URL, session, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`); resp.StatusCode != tt.want {
			t.Errorf("%s: %s", tt.upstream, resp.Status)
		}
		bridge.Close()
		front.Close()
	}
}
