package bridge

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/ask"
	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/bridge/flight"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
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

// charged is a conversation whose session is charged, of a server that asks for a and b and
// then for nothing.
func charged(t *testing.T, memory *budget.Budget) (*conversation, *budget.Account) {
	t.Helper()
	conv, _ := session(t, Limits{}, inputRequired(`"s"`, question1("a"), question1("b")), result(booked))
	account, err := memory.Open("")
	if err != nil {
		t.Fatal(err)
	}
	conv.Account = account
	return conv, account
}

// long is an answer of 20 KiB and a little.
var long = []byte(`{"action":"accept","content":{"k":"` + strings.Repeat("x", 20<<10) + `"}}`)

func TestAnswersThatWaitForOthersAreCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(400 << 10)
		conv, account := charged(t, memory)
		c := request(t, conv, "1", mcp.MethodToolsCall, book)
		before := memory.Used()
		paid := budget.On(account)
		if err := paid.Grow(25 << 10); err != nil {
			t.Fatal(err)
		}
		if err := conv.Answer(downstream.Caller{Account: account, Paid: &paid}, jsonrpc.Message{ID: c.asked()[0].ID, Result: long}); err != nil {
			t.Fatal(err)
		}
		if used := memory.Used() - before; used < 25<<10 || used > 26<<10 {
			t.Errorf("while its message is held, an answer is charged %d bytes", used)
		}
		paid.Release()
		if used := memory.Used() - before; used < 20<<10 || used > 21<<10 {
			t.Errorf("an answer that waits for another is charged %d bytes", used)
		}
		c.answer(1, `{"action":"decline"}`)
		c.result()
		if memory.Used() != 0 {
			t.Errorf("%d bytes are left charged", memory.Used())
		}
	})
}

// An answer that cannot be kept is not taken: its client may send it again. The last one of a round ends what
// the call holds.
func TestAnAnswerThatCannotBeKeptLeavesItsQuestionOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(400 << 10)
		conv, account := charged(t, memory)
		c := request(t, conv, "1", mcp.MethodToolsCall, book)
		answer := func(n int) error {
			defer synctest.Wait()
			return conv.Answer(downstream.Caller{Account: account}, jsonrpc.Message{ID: c.asked()[n].ID, Result: long})
		}
		account.Charge(300 << 10)
		if err := answer(0); !budget.Short(err) || len(c.asked()) != 1 || c.over() {
			t.Fatalf("one who holds too much: %v, %d questions", err, len(c.asked()))
		}
		account.Give(300 << 10)
		if err := answer(0); err != nil || len(c.asked()) != 2 {
			t.Fatalf("the same again: %v, %d questions", err, len(c.asked()))
		}
		account.Charge(300 << 10)
		if err := answer(1); err != nil {
			t.Errorf("the last one: %v", err)
		}
		if got := c.result(); !strings.Contains(got, "content") {
			t.Error(got)
		}
	})
}

// TestAnAnswerThatIsRefusedTakesNoRoomInTheStore, however often its client sends it.
func TestAnAnswerThatIsRefusedTakesNoRoomInTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(400 << 10)
		conv, account := charged(t, memory)
		s := &strongbox{client: &client{t: t, conv: conv}}
		s.begin()
		account.Charge(300 << 10)
		for range 10 {
			if err := conv.Answer(downstream.Caller{Account: account}, jsonrpc.Message{ID: s.client.asked()[0].ID, Result: long}); !budget.Short(err) {
				t.Fatalf("who holds too much gets %v", err)
			}
		}
		taken := 0
		for _, bytes := range s.grown {
			taken += bytes
		}
		if len(s.grown) == 0 || taken != 0 {
			t.Errorf("%d bytes are taken by %v", taken, s.grown)
		}
		account.Give(300 << 10)
	})
}

// A call that waits for the same one to come again keeps its params and what its person answers
// meanwhile; its first request holds nothing any more.
func TestWhatIsHeldBackForTheSameCallIsCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(400 << 10)
		conv, _, ada := mute(t, ask.Page, inputRequired(`"s"`, form1("q")), result(booked))
		account, err := memory.Open("")
		if err != nil {
			t.Fatal(err)
		}
		conv.Account = account
		params := `{"name":"book","arguments":{"a":"` + strings.Repeat("p", 10<<10) + `"}}`
		first := request(t, conv, "1", mcp.MethodToolsCall, params)
		before := memory.Used()
		pass(20 * time.Second)
		if used := memory.Used() - before; used < 10<<10 || used > 11<<10 {
			t.Errorf("a call whose request is over is charged %d bytes more", used)
		}
		ada.answer(linkOf(t, first.result()), "f0="+strings.Repeat("n", 20<<10)+"&action=accept")
		if used := memory.Used() - before; used < 30<<10 || used > 32<<10 {
			t.Errorf("with an answer that is held back it is charged %d bytes more", used)
		}
		if got := request(t, conv, "2", mcp.MethodToolsCall, params).result(); !strings.Contains(got, `"ok"`) || memory.Used() != 0 {
			t.Errorf("%s; %d bytes are left charged", got, memory.Used())
		}
	})
}

// TestALargeRequestIsChargedForWhatItTakesInTransit: besides the client's it is in memory twice while it is at the server.
func TestALargeRequestIsChargedForWhatItTakesInTransit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(1 << 20)
		var used int64
		up := &script{steps: []step{
			func(ctx context.Context, c *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
				used = memory.Used()
				return result(booked)(ctx, c, notify)
			},
			result(booked),
		}}
		b := New(Options{Upstream: up})
		defer b.Close()
		account, err := memory.Open("")
		if err != nil {
			t.Fatal(err)
		}
		conv := b.newConversation(mcp.V20251125, downstream.Caller{Account: account}, catalog.Unknown, nil)
		conv.declare(nil, nil)
		of := func(size int) string {
			return `{"name":"book","arguments":{"a":"` + strings.Repeat("x", size) + `"}}`
		}
		if got := request(t, conv, "1", mcp.MethodToolsCall, of(50<<10)).result(); !strings.Contains(got, "content") || used < 100<<10 {
			t.Errorf("%d bytes were charged for one of 50 KiB: %s", used, got)
		}
		if got := request(t, conv, "2", mcp.MethodToolsCall, of(600<<10)).result(); !strings.Contains(got, "limits.memory") {
			t.Errorf("one for which there is no memory: %s", got)
		}
		if memory.Used() != 0 {
			t.Errorf("%d bytes are left charged", memory.Used())
		}
	})
}

// TestALargeResponseIsChargedForItsCopy: it is in memory as the server sent it, and as the client gets it.
func TestALargeResponseIsChargedForItsCopy(t *testing.T) {
	memory := budget.New(1 << 20)
	account, err := memory.Open("")
	if err != nil {
		t.Fatal(err)
	}
	var held flight.Held
	held.Open(account)
	if err := held.Set(50 << 10); err != nil || memory.Used() != 100<<10 {
		t.Errorf("%d bytes are charged for one of 50 KiB, %v", memory.Used(), err)
	}
	if err := held.Set(300 << 10); err == nil {
		t.Error("one for whose copy there is no memory is taken")
	}
	held.End()
	if memory.Used() != 0 {
		t.Errorf("%d bytes are left charged", memory.Used())
	}
}

// What is made of a result may be several times as long as that, and takes more on the way.
func TestWhatIsMadeOfAResultIsCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocks := `{"content":[{"type":"text","text":""}` + strings.Repeat(`,{"type":"q"}`, 20_000) + `]}`
		memory := budget.New(64 << 20)
		conv, _ := session(t, Limits{}, result(blocks), result(blocks))
		account, err := memory.Open("")
		if err != nil {
			t.Fatal(err)
		}
		conv.Account, conv.Rules = account, &translate.Rules{Version: mcp.V20241105}
		if got := request(t, conv, "1", mcp.MethodToolsCall, book).result(); strings.Count(got, `{\"type\":\"q\"}`) != 20_000 || memory.Used() != 0 {
			t.Errorf("%d bytes of result, %d left charged", len(got), memory.Used())
		}
		hold := budget.On(account)
		hold.Charge(63 << 20)
		c := request(t, conv, "2", mcp.MethodToolsCall, book)
		if got := c.rpcError().Message; !strings.Contains(got, "may be done, but the response was not taken in") || strings.Contains(got, "again") || !strings.Contains(got, "limits.memory") {
			t.Errorf("without the memory: %.200s", got)
		}
		hold.Release()
		if memory.Used() != 0 {
			t.Errorf("%d bytes are left charged", memory.Used())
		}
	})
}
