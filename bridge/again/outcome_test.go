package again_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/bridge/again"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

var done = downstream.Result("1", []byte(`{"content":[{"type":"text","text":"booked"}]}`))

// answered is a call of Ada's, alone in its session, whose question a person has answered while its
// request waited.
func answered(calls *again.Replies, account *budget.Account, params string) (*again.Reply, *client, *flow) {
	out, f := &client{}, &flow{user: "ada", busy: true}
	p := again.New(again.Options{
		Session: session{}, Calls: calls, Account: account, Version: mcp.V20251125, Wait: time.Minute, Life: time.Hour,
	}, request("1", params), out)
	p.Bind(f)
	p.Linked("q", "https://bridge/page")
	p.Settled("q")
	return p, out, f
}

func (c *client) got(what string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end != nil && strings.Contains(string(c.end.AppendTo(nil)), what)
}

// A client that gives up while the tool runs has broken its connection, and cancelled nothing. The same call gets what
// the first comes to.
func TestTheSameCallTakesThePlaceOfOneWhoseConnectionBroke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls again.Replies
		calls.Limit(32)
		p, first, f := answered(&calls, nil, book)
		if r, _ := rejoin(&calls, ada(), "2", book); r != nil {
			t.Fatal("a call was taken from the request that waits for it")
		}
		first.left = true
		if !p.Reachable() {
			t.Error("there is no way back to the call")
		}
		r, second := rejoin(&calls, ada(), "3", book)
		if r == nil {
			t.Fatal("the same call is another")
		}
		if r.GoOn(); !first.got("the same call was made again") || f.detached != 1 {
			t.Errorf("the first request got %+v", first.end)
		}
		if r, _ := rejoin(&calls, ada(), "4", book); r != nil {
			t.Error("two requests wait for one call")
		}
		if p.Finish(done); !second.got("booked") || second.end.ID != "3" || calls.Len() != 0 {
			t.Errorf("the second request got %+v", second.end)
		}
	})
}

func TestAnOutcomeThatGotToNobodyIsForTheSameCallOnce(t *testing.T) {
	for name, msg := range map[string]downstream.Message{"booked": done, "is down": downstream.Failure("1", &jsonrpc.Error{Code: -32000, Message: "the airline is down"})} {
		synctest.Test(t, func(t *testing.T) {
			var calls again.Replies
			calls.Limit(32)
			memory := budget.New(1 << 20)
			account := memory.Guest("ada")
			p, first, _ := answered(&calls, account, book)
			first.left = true
			p.Finish(msg)
			if calls.Len() != 1 || memory.Used() < int64(len(book)) {
				t.Fatalf("%d outcomes wait, %d bytes are charged", calls.Len(), memory.Used())
			}
			if r, _ := rejoin(&calls, downstream.Caller{Principal: "bob"}, "2", book); r != nil {
				t.Error("somebody else gets it")
			}
			lost := &client{left: true} // whose connection breaks as well
			req := request("3", book)
			calls.Rejoin("", mcp.V20251125, ada(), &req, lost).GoOn()
			r, second := rejoin(&calls, ada(), "4", book)
			if r == nil {
				t.Fatal("the same call is another")
			}
			if r.GoOn(); !second.got(name) || second.end.ID != "4" {
				t.Errorf("it got %+v", second.end)
			}
			if r, _ := rejoin(&calls, ada(), "5", book); r != nil || calls.Len() != 0 || memory.Used() != 0 {
				t.Errorf("given again: %v; %d wait, %d bytes are charged", r != nil, calls.Len(), memory.Used())
			}
		})
	}
}

// A client may come back for its stream; what it has it does not get from the same call.
func TestAnOutcomeThatWasFetchedIsNotGivenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls again.Replies
		calls.Limit(32)
		p, first, _ := answered(&calls, nil, book)
		first.left = true
		p.Finish(done)
		first.left = false
		if r, _ := rejoin(&calls, ada(), "2", book); r != nil {
			t.Error("it was given again")
		}
		if pass(time.Minute); calls.Len() != 0 {
			t.Error("it is kept")
		}
	})
}

func TestWhatNobodyCanWantIsNotKept(t *testing.T) {
	for name, end := range map[string]func(*again.Replies, *again.Reply, *client){
		"its client got it": func(_ *again.Replies, p *again.Reply, _ *client) { p.Finish(done) },
		"cancelled":         func(_ *again.Replies, p *again.Reply, first *client) { first.left = true; p.Abandon() },
		"cancelled after its end": func(calls *again.Replies, p *again.Reply, first *client) {
			first.left = true
			p.Finish(done)
			calls.Cancelled(downstream.Caller{Principal: "bob"}, "1")
			if calls.Len() == 0 {
				panic("cancelled by somebody else")
			}
			calls.Cancelled(ada(), "1")
		},
		"its time is over": func(_ *again.Replies, p *again.Reply, first *client) {
			first.left = true
			p.Finish(done)
			pass(time.Hour)
		},
		"its session is over": func(calls *again.Replies, p *again.Reply, first *client) {
			first.left = true
			p.Finish(done)
			calls.Shut()
		},
		"its session was over": func(calls *again.Replies, p *again.Reply, first *client) {
			first.left = true
			calls.Shut()
			p.Finish(done)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls again.Replies
				calls.Limit(32)
				memory := budget.New(1 << 20)
				p, first, _ := answered(&calls, memory.Guest("ada"), book)
				end(&calls, p, first)
				if r, _ := rejoin(&calls, ada(), "2", book); r != nil || calls.Len() != 0 || memory.Used() != 0 {
					t.Errorf("found: %v, %d wait, %d bytes are charged", r != nil, calls.Len(), memory.Used())
				}
			})
		})
	}
}

// A call that nobody was asked in is none that its client was told to make again.
func TestACallThatAskedNothingIsAnotherEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls again.Replies
		p, first, _ := kept(&calls, "")
		first.left = true
		if r, _ := rejoin(&calls, ada(), "2", book); r != nil || p.Reachable() {
			t.Error("it was taken over")
		}
		if p.Finish(done); calls.Len() != 0 {
			t.Error("its outcome is kept")
		}
	})
}

func TestOutcomesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls again.Replies
		calls.Limit(2)
		for _, name := range []string{"a", "b", "c"} {
			p, first, _ := answered(&calls, nil, `{"name":"`+name+`"}`)
			first.left = true
			p.Finish(done)
		}
		if r, _ := rejoin(&calls, ada(), "2", `{"name":"a"}`); r != nil || calls.Len() != 2 {
			t.Errorf("the oldest is kept: %v, of %d", r != nil, calls.Len())
		}
		visitor := &client{left: true} // who may know no more than the session's id
		p := again.New(again.Options{
			Session: session{}, Calls: &calls, Unproven: true, Version: mcp.V20251125, Wait: time.Minute, Life: time.Hour,
		}, request("1", book), visitor)
		p.Bind(&flow{user: "bob"})
		p.Linked("q", "https://bridge/page")
		if p.Finish(done); calls.Len() != 3 {
			t.Errorf("%d outcomes are kept besides a visitor's", calls.Len()-1)
		}
		calls.Shut()
	})
}

// What there is no memory for was done all the same, and the same call is told so.
func TestAnOutcomeWithoutMemoryIsAnErrorOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls again.Replies
		calls.Limit(32)
		memory := budget.New(1 << 20)
		p, first, _ := answered(&calls, memory.Guest("ada"), book)
		first.left = true
		p.Finish(downstream.Result("1", []byte(`{"content":"`+strings.Repeat("x", 2<<20)+`"}`)))
		if memory.Used() > 1<<12 {
			t.Errorf("%d bytes are charged", memory.Used())
		}
		r, second := rejoin(&calls, ada(), "2", book)
		if r == nil {
			t.Fatal("the same call is another")
		}
		if r.GoOn(); !second.got("could not be kept") || memory.Used() != 0 {
			t.Errorf("it got %+v, %d bytes are charged", second.end, memory.Used())
		}
	})
}
