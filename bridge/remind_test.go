package bridge

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/bridge/jsonrpc"
)

// A question that its client could not be given is put again, under its id, while it is open; an answer counts once.
func TestAQuestionThatWasLostIsPutAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, up := session(t, Limits{}, inputRequired(`"s"`, question1("q")), result(booked))
		c := request(t, conv, "1", "tools/call", book)
		remind := func(id jsonrpc.ID) int {
			conv.Remind([]string{string(id), `"another"`})
			synctest.Wait()
			return len(c.asked())
		}
		first := c.asked()[0]
		if n := remind(first.ID); n != 2 {
			t.Fatalf("asked %d times", n)
		}
		if again := c.asked()[1]; again.ID != first.ID || again.Method != first.Method || string(again.Params) != string(first.Params) {
			t.Errorf("asked %s, then %s", first.Params, again.Params)
		}
		answer := jsonrpc.Message{ID: first.ID, Result: []byte(accepted)}
		if err := conv.Answer(ada(), answer); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := c.result(); !strings.Contains(got, "ok") || remind(first.ID) != 2 || len(up.calls()) != 2 {
			t.Errorf("%s after %d requests, asked %d times", got, len(up.calls()), len(c.asked()))
		}
	})
}
