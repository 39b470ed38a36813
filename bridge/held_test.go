package bridge

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/mcp"
)

func TestAWaitingCallIsChargedForWhatItKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(100 << 10)
		state := strings.Repeat("s", 20<<10)
		asks := inputRequired(`"`+state+`"`, question1("q"))
		up := &script{steps: []step{asks, asks, asks, result(booked)}}
		b := New(Options{Upstream: up})
		defer b.Close()
		account, err := memory.Open("")
		if err != nil {
			t.Fatal(err)
		}
		conv := b.newConversation(mcp.V20251125, downstream.Caller{Account: account}, catalog.Unknown, nil)
		conv.declare(nil, []byte(declaredByClient))
		call := func(id string) *client {
			return request(t, conv, id, mcp.MethodToolsCall, book)
		}
		first, _ := call("1"), call("2")
		if used := memory.Used(); used < 40<<10 || used > 41<<10 {
			t.Errorf("two calls that wait are charged %d bytes", used)
		}
		if got := call("3").result(); !strings.Contains(got, "limits.memory") || !strings.Contains(got, `"isError":true`) {
			t.Errorf("one too many: %s", got)
		}
		first.answer(0, `{"action":"decline"}`)
		synctest.Wait()
		if !strings.Contains(first.result(), "content") {
			t.Errorf("answered: %s", first.result())
		}
		conv.Close(downstream.ErrStopping)
		synctest.Wait()
		if memory.Used() != 0 {
			t.Errorf("%d bytes are left charged", memory.Used())
		}
	})
}
