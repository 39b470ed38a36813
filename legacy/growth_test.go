package legacy

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

// TestAnswersBesideOpenQuestionsTakeRoom: several at once, too, until the last one makes the call go on.
func TestAnswersBesideOpenQuestionsTakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt := stored()
		opt.StoreRoom = budget.NewRoom(1 << 20)
		b := newFake()
		_, p := servePipe(t, opt, b)
		p.initialize(mcp.V20250618)
		answer := p.async(`{"jsonrpc":"2.0","id":"call","method":"hold"}`)
		c := <-b.held
		want(t, "a question", c.ask(time.Hour, nil), nil)
		asked := opt.StoreRoom.Used()
		const large = 600 << 10
		k := c.Checkpointer()
		want(t, "an answer", k.Grow(large), nil)
		want(t, "another one at the same time", k.Grow(large), budget.ErrNoRoom)
		want(t, "it is not taken after all", k.Grow(-large), nil)
		want(t, "what is taken then", opt.StoreRoom.Used(), asked)
		want(t, "it comes again", k.Grow(large), nil)
		save := func(n uint64, size int, open ...jsonrpc.ID) {
			t.Helper()
			want(t, "it is kept", k.Save(downstream.Checkpoint{Request: `"call"`, N: n, Record: make([]byte, size), Open: open, TTL: time.Hour}), nil)
		}
		save(2, 10, `"q"`) // of a smaller one: the large one is on its way
		if used := opt.StoreRoom.Used(); used < asked+large || used > asked+large+1<<10 {
			t.Errorf("%d bytes are taken, %d before", used, asked)
		}
		save(3, 1000)
		if used := opt.StoreRoom.Used(); used > asked+1000 {
			t.Errorf("once all is answered %d bytes are taken", used)
		}
		c.finish(`{}`)
		<-answer
	})
}
