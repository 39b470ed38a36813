package relay

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/downstream"
)

// What the bridge says by itself in a session, it says in the name of whose session it is.
func TestWhatTheBridgeSaysItselfHasTheSessionsCredentials(t *testing.T) {
	seen := make(chan string, 10)
	s := over(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch text := string(body); {
		case r.Method == http.MethodGet:
			events(w, "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"roots/list\"}\n\n")
			<-r.Context().Done()
		case strings.Contains(text, "initialize\""):
			w.Header().Set("Mcp-Session-Id", "s1")
			plain(w, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}`)
		case r.Method == http.MethodDelete || strings.Contains(text, "cannot be asked"):
			seen <- r.Method + " " + r.Header.Get("Authorization") + " " + r.Header.Get("X-Api-Key")
			fallthrough
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	})
	relay := New(Options{Server: s})
	caller := downstream.Caller{Authorization: "Bearer mine", Header: http.Header{"X-Api-Key": {"K1"}}}
	conv, _, err := relay.Open(t.Context(), caller, message(t, initialize), nil)
	if err != nil {
		t.Fatal(err)
	}
	conv.Notify(caller, message(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	if got := <-seen; got != "POST Bearer mine K1" {
		t.Errorf("the question is declined with %q", got)
	}
	conv.Close(nil)
	relay.Close()
	if got := <-seen; got != "DELETE Bearer mine K1" {
		t.Errorf("the session ends with %q", got)
	}
}
