package relay

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// A relayed call that fails is told with whose it was, of what and why, some a minute; one
// that its own client ended is not.
func TestTheLogTellsOfRelayedCallsThatFail(t *testing.T) {
	var log bytes.Buffer
	s := &scripted{}
	conv, _, err := open(t, Options{Server: s, Log: zerolog.New(&log)}, newClient())
	if err != nil {
		t.Fatal(err)
	}
	caller := downstream.Caller{Session: "0123456789abcdef"}
	for id := range 40 {
		conv.Serve(t.Context(), caller, downstream.NewRequest(message(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x","arguments":{"s":"secret"}}}`, id+1))), newReply())
		s.inbox.Fail(jsonrpc.IntID(int64(id+1)), errors.New("lost"))
	}
	ask(t, conv, aCall)
	conv.Close(errOver)
	text := log.String()
	const line = `{"level":"warn","error":"lost","method":"tools/call","session_id":"01234567","tool":"x","duration":`
	if n := strings.Count(text, line); n != 20 || strings.Count(text, "\n") != n || strings.Contains(text, "secret") {
		t.Errorf("%d lines in\n%s", n, text)
	}
}

// Who runs the bridge ends the session: its clients hear that, and so does the log.
func TestRelayedCallsOfASessionThatAnOperatorEndsSaySo_DT19(t *testing.T) {
	var log bytes.Buffer
	conv, _, err := open(t, Options{Server: &scripted{}, Log: zerolog.New(&log)}, newClient())
	if err != nil {
		t.Fatal(err)
	}
	out := ask(t, conv, aCall)
	conv.Close(downstream.ErrOperator)
	const want = "the call was ended by who runs the bridge; whether the call was executed is not known"
	if got := out.wait(t); !strings.Contains(got, want) || !strings.Contains(log.String(), want) {
		t.Errorf("the call gets %s, the log has %s", got, log.String())
	}
}
