package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/redistest"
)

// trips is how often bridges have asked a Redis so far: the scripts of changes and of loading, and
// reads of what they keep copies of.
func trips(server *redistest.Server) (n int) {
	for line := range strings.Lines(server.Text("INFO", "commandstats")) {
		for _, command := range []string{"evalsha", "eval", "exec"} {
			var calls int
			if rest, ok := strings.CutPrefix(line, "cmdstat_"+command+":calls="); ok {
				_, _ = fmt.Sscan(strings.Split(rest, ",")[0], &calls)
				n += calls
			}
		}
	}
	return n
}

// TestRoundTripsToAStoredSession: a plain call asks Redis nothing, a question takes one round trip before
// it leaves, one for the answer, and one at the end; how many sessions are stored makes no difference.
func TestRoundTripsToAStoredSession(t *testing.T) {
	redis := redistest.Start(t)
	a := newAsker(t)
	server := httptest.NewServer(a)
	defer server.Close()
	k := launch(t, "--upstream", server.URL, "--store.url", "redis://"+redis.Addr(), "--store.keys", keyFile(t), "--store.unload", "0s") // else it looks once a second what is due
	k.session = k.request(http.MethodPost, initializeAsking).Header.Get("Mcp-Session-Id")
	k.status(http.MethodPost, listTools)

	before := trips(redis)
	for range 50 {
		if status := k.status(http.MethodPost, listTools); status != http.StatusOK {
			t.Fatalf("a plain call gets %d", status)
		}
	}
	if n := trips(redis) - before; n != 0 {
		t.Errorf("50 plain calls took %d round trips", n)
	}
	for i := range 3 {
		before = trips(redis)
		f := k.follow(k.request(http.MethodPost, `{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"ask","arguments":{}}}`))
		id := fmt.Sprint(f.message()["id"])
		asked := trips(redis) - before
		k.answer(id)
		wantDone(t, f.message())
		all := trips(redis) - before
		if i == 0 { // that the client answers such questions is written down once
			all--
		}
		if asked > 1 || all > 3 {
			t.Errorf("question %d took %d round trips before it left, and %d in all", i, asked, all)
		}
	}
}
