package relay

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// What waits for a server that takes one message at a time, and takes its time, is charged to
// whoever sends it. Beyond what there is it is dropped, and the server hears that of an answer.
func TestWhatWaitsForASlowServerIsCharged(t *testing.T) {
	release, first, got := make(chan struct{}), make(chan struct{}, 1), make(chan string, 64)
	s := &legacyServer{answer: func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) {
		w.WriteHeader(http.StatusMethodNotAllowed)
	}}
	front := over(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Body = io.NopCloser(bytes.NewReader(body)); bytes.Contains(body, []byte(`"x":`)) {
			first <- struct{}{}
			<-release
			<-first
		}
		s.serve(w, r)
		got <- string(body)
	})
	memory := budget.New(4 << 20)
	account, err := memory.Open("somebody")
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	relay := New(Options{Server: front, Log: zerolog.New(&log)})
	caller := downstream.Caller{Authorization: "Bearer mine", Account: account}
	conv, _, err := relay.Open(t.Context(), caller, message(t, initialize), newClient())
	if err != nil {
		t.Fatal(err)
	}
	before, filler := memory.Used(), strings.Repeat("x", 500*kib)
	for n := range 10 {
		conv.Notify(caller, message(t, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/n%d","params":{"x":"%s"}}`, n, filler)))
	}
	if used := memory.Used() - before; used < 500*kib || used > 2<<20 {
		t.Errorf("%d bytes are charged for what waits", used)
	}
	if !strings.Contains(log.String(), "was not handed on") {
		t.Errorf("the log says %q", log.String())
	}
	if err := conv.Answer(caller, message(t, `{"jsonrpc":"2.0","id":7,"result":{"x":"`+filler+`"}}`)); err != nil {
		t.Error(err)
	}
	conv.Notify(caller, message(t, `{"jsonrpc":"2.0","method":"notifications/last"}`))
	close(release)
	notifications, answered := 0, ""
	for text := ""; !strings.Contains(text, "notifications/last"); text = <-got {
		switch {
		case strings.Contains(text, `"x":`):
			notifications++
		case strings.Contains(text, `"id":7`):
			answered = text
		}
	}
	if notifications == 0 || notifications > 4 {
		t.Errorf("%d notifications of ten were handed on", notifications)
	}
	if !strings.Contains(answered, `"error"`) || !strings.Contains(answered, "limits.memory") {
		t.Errorf("in the place of an answer the server got %q", answered)
	}
	conv.Close(nil)
	relay.Close()
	if left := memory.Used() - before; left > 0 {
		t.Errorf("%d bytes are still charged", left)
	}
}
