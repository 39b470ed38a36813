package bridge

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// accountOf gives a conversation an account of this budget.
func accountOf(t *testing.T, conv *conversation, memory *budget.Budget) *budget.Account {
	t.Helper()
	account, err := memory.Open("")
	if err != nil {
		t.Fatal(err)
	}
	conv.Account = account
	return account
}

// fill has nobody find memory until it is called again.
func fill(memory *budget.Budget) (empty func()) {
	other := memory.Own()
	bytes := int(memory.Limit())
	other.Charge(bytes)
	return func() { other.Give(bytes) }
}

// TestARetryWaitsForMemory: what it carries was acknowledged. A first request is refused.
func TestARetryWaitsForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(400 << 10)
		conv, up := session(t, Limits{}, inputRequired(`"`+strings.Repeat("s", 20<<10)+`"`, question1("q")), result(booked))
		accountOf(t, conv, memory)
		c := request(t, conv, "1", mcp.MethodToolsCall, book)
		empty := fill(memory)
		c.answer(0, `{"action":"decline"}`)
		pass(5 * time.Minute)
		if c.over() || len(up.calls()) != 1 {
			t.Fatalf("while there is no memory it ends: %v, after %d requests", c.over(), len(up.calls()))
		}
		empty()
		pass(10 * time.Second)
		if got := c.result(); !strings.Contains(got, `"ok"`) {
			t.Error(got)
		}
		if memory.Used() != 0 {
			t.Errorf("%d bytes are left charged", memory.Used())
		}
	})
}

// TestTheResultOfARetryWaitsForMemory: the server has done what it says.
func TestTheResultOfARetryWaitsForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(400 << 10)
		var empty func()
		large := func(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
			empty = fill(memory)
			if err := upstream.Charge(call.Held, upstream.HeldStep); err != nil {
				return nil, &upstream.Failure{Cause: upstream.NoMemory, Sent: true, Err: err, Detail: err.Error()}
			}
			return result(booked)(ctx, call, notify)
		}
		conv, _ := session(t, Limits{}, inputRequired(`"s"`, question1("q")), large)
		accountOf(t, conv, memory)
		c := request(t, conv, "1", mcp.MethodToolsCall, book)
		c.answer(0, `{"action":"decline"}`)
		pass(time.Minute)
		if c.over() {
			t.Fatalf("while there is no memory: %s", c.result())
		}
		empty()
		pass(10 * time.Second)
		if got := c.result(); !strings.Contains(got, `"ok"`) {
			t.Error(got)
		}
	})
}

// TestARetryMayHaveMoreThanItsSession: it ends what that holds, which would have it wait for itself.
func TestARetryMayHaveMoreThanItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(400 << 10)
		conv, _ := session(t, Limits{}, inputRequired(`"`+strings.Repeat("s", 20<<10)+`"`, question1("q")), result(booked))
		account := accountOf(t, conv, memory)
		c := request(t, conv, "1", mcp.MethodToolsCall, book)
		account.Charge(200 << 10)
		c.answer(0, `{"action":"decline"}`)
		synctest.Wait()
		if got := c.result(); !strings.Contains(got, `"ok"`) {
			t.Error(got)
		}
	})
}

// TestTheTranslationOfARetrysResultMayHaveMoreThanItsSession: nobody would do again what the server has done.
func TestTheTranslationOfARetrysResultMayHaveMoreThanItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocks := `{"content":[{"type":"text","text":""}` + strings.Repeat(`,{"type":"q"}`, 20_000) + `]}`
		memory := budget.New(64 << 20)
		conv, _ := session(t, Limits{}, inputRequired(`"s"`, question1("q")), result(blocks))
		account := accountOf(t, conv, memory)
		conv.Rules = &translate.Rules{Version: mcp.V20250618}
		c := request(t, conv, "1", mcp.MethodToolsCall, book)
		left := 1 << 20 // enough for the response, not for what its translation takes
		share := 0
		for account.Take(1<<20) == nil {
			share += 1 << 20
		}
		account.Give(min(share, left))
		c.answer(0, `{"action":"decline"}`)
		synctest.Wait()
		if got := c.result(); strings.Count(got, `{\"type\":\"q\"}`) != 20_000 {
			t.Errorf("%.200s", got)
		}
		account.Give(share - min(share, left))
		if memory.Used() != 0 {
			t.Errorf("%d bytes are left charged", memory.Used())
		}
	})
}

// TestACallThatComesBackIsNotEndedForWantOfMemory: whoever brings it back has judged that.
func TestACallThatComesBackIsNotEndedForWantOfMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := session(t, Limits{}, inputRequired(`"`+strings.Repeat("s", 20<<10)+`"`, question1("q")))
		before := request(t, conv, "7", mcp.MethodToolsCall, book)
		pass(time.Minute)
		memory := budget.New(400 << 10)
		there, _ := session(t, Limits{}, result(booked))
		accountOf(t, there, memory)
		empty := fill(memory)
		c := &client{t: t, conv: there}
		for _, flow := range conv.Flows() {
			if err := there.Resume(downstream.Caller{}, flow, c); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if c.over() {
			t.Fatalf("it ends: %s", c.result())
		}
		empty()
		if err := there.Answer(downstream.Caller{}, jsonrpc.Message{ID: before.asked()[0].ID, Result: []byte(`{"action":"decline"}`)}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := c.result(); !strings.Contains(got, `"ok"`) {
			t.Error(got)
		}
	})
}

// largeQuestion is a question, under the key b, whose translation for clients of 2025-06-18 is charged.
var largeQuestion = `"b":{"method":"elicitation/create","params":{"message":"Which?","requestedSchema":{"type":"object","properties":{"a":{"type":"string","oneOf":[{"const":"a"}` +
	strings.Repeat(`,{"const":"a"}`, 50_000) + `]}}}}}`

// TestACallThatIsNotTakenBackIsNotCharged: it was cancelled before it came.
func TestACallThatIsNotTakenBackIsNotCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := session(t, Limits{}, inputRequired(`"`+strings.Repeat("s", 20<<10)+`"`, question1("q")))
		request(t, conv, "7", mcp.MethodToolsCall, book)
		pass(time.Minute)
		memory := budget.New(4 << 20)
		there, _ := session(t, Limits{}, result(booked))
		accountOf(t, there, memory)
		c := &client{t: t, conv: there}
		there.Notify(downstream.Caller{}, jsonrpc.Message{Method: mcp.NotificationCancelled, Params: []byte(`{"requestId":7}`)})
		for _, flow := range conv.Flows() {
			if err := there.Resume(downstream.Caller{}, flow, c); err == nil {
				t.Error("it came back")
			}
		}
		synctest.Wait()
		if memory.Used() != 0 {
			t.Errorf("%d bytes are left charged", memory.Used())
		}
	})
}

// askedAndFull is a call of 2025-06-18 that has put its first question, and whose session may hold no more.
func askedAndFull(t *testing.T, questions ...string) (*conversation, *client) {
	t.Helper()
	conv, _ := session(t, Limits{}, inputRequired(`"s"`, questions...), result(booked))
	account := accountOf(t, conv, budget.New(64<<20))
	conv.Rules = &translate.Rules{Version: mcp.V20250618}
	c := request(t, conv, "1", mcp.MethodToolsCall, book)
	if len(c.asked()) != 1 {
		t.Fatal(len(c.asked()))
	}
	for account.Take(64<<10) == nil {
	}
	return conv, c
}

// TestTheNextQuestionOfARoundMayHaveMoreThanItsSession: an answer to the first was acknowledged.
func TestTheNextQuestionOfARoundMayHaveMoreThanItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := askedAndFull(t, question1("a"), largeQuestion)
		c.answer(0, `{"action":"decline"}`)
		synctest.Wait()
		if c.over() {
			t.Errorf("after its client has answered: %.300s", c.result())
		}
	})
}

// TestTheNextQuestionOfARoundMayHaveMoreThanThereIs, and may not have any memory whatever.
func TestTheNextQuestionOfARoundMayHaveMoreThanThereIs(t *testing.T) {
	for name, times := range map[string]int{"full": 1, "twice as full": 2} {
		synctest.Test(t, func(t *testing.T) {
			memory := budget.New(64 << 20)
			conv, _ := session(t, Limits{}, inputRequired(`"s"`, question1("a"), largeQuestion), result(booked))
			accountOf(t, conv, memory)
			conv.Rules = &translate.Rules{Version: mcp.V20250618}
			c := request(t, conv, "1", mcp.MethodToolsCall, book)
			if len(c.asked()) != 1 {
				t.Fatal(len(c.asked()))
			}
			for range times {
				defer fill(memory)()
			}
			c.answer(0, `{"action":"decline"}`)
			synctest.Wait()
			if c.over() != (times > 1) {
				t.Errorf("%s, after its client has answered it is over: %v", name, c.over())
			}
		})
	}
}

// TestAQuestionIsPutAgainWhateverItsSessionHolds: it was put before.
func TestAQuestionIsPutAgainWhateverItsSessionHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, c := askedAndFull(t, largeQuestion)
		conv.Remind([]string{string(c.asked()[0].ID)})
		synctest.Wait()
		if len(c.asked()) != 2 || c.over() {
			t.Errorf("asked %d times, over %v", len(c.asked()), c.over())
		}
	})
}

// TestResponsesThatHaveComeInPartDoNotWaitForEachOther: all together fit into memory in part only, and what is there of one goes with
// the whole of it.
func TestResponsesThatHaveComeInPartDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(8 << 20)
		slowly := func(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
			for size := upstream.HeldStep; size <= 1<<20; size += upstream.HeldStep {
				if err := upstream.Charge(call.Held, size); err != nil {
					return nil, &upstream.Failure{Cause: upstream.NoMemory, Sent: true, Err: err, Detail: err.Error()}
				}
				<-time.After(time.Millisecond)
			}
			return result(booked)(ctx, call, notify)
		}
		var calls []*client
		for i := range 12 {
			conv, _ := session(t, Limits{}, inputRequired(`"s"`, question1("q")), slowly)
			account, err := memory.Open(fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			conv.Account = account
			c := request(t, conv, "1", mcp.MethodToolsCall, book)
			synctest.Wait()
			calls = append(calls, c)
		}
		for _, c := range calls {
			c.answer(0, `{"action":"decline"}`)
		}
		pass(10 * time.Second)
		for i, c := range calls {
			if !c.over() || !strings.Contains(c.result(), `"ok"`) {
				t.Errorf("call %d is over: %v, %v", i, c.over(), c.response)
			}
		}
		if memory.Used() != 0 {
			t.Errorf("%d bytes are left charged", memory.Used())
		}
	})
}

// slowReader is a client that takes its time for the answer.
type slowReader struct {
	*client
	takes time.Duration
}

func (s *slowReader) Finish(msg downstream.Message) {
	time.Sleep(s.takes)
	s.client.Finish(msg)
}

// large is a response that takes memory, and goes on with what then says.
func large(then step) step {
	return func(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
		if err := upstream.Charge(call.Held, 128<<10); err != nil {
			return nil, &upstream.Failure{Cause: upstream.NoMemory, Sent: true, Err: err, Detail: err.Error()}
		}
		return then(ctx, call, notify)
	}
}

// TestWhoIsAloneKeepsNobodyFromHisResult: what needs no more memory, and what does not go on, has no more than there is.
func TestWhoIsAloneKeepsNobodyFromHisResult(t *testing.T) {
	for name, first := range map[string]struct {
		response step
		reads    time.Duration // what it comes to
		keeps    time.Duration // others waiting
	}{
		"reads its result slowly": {result(booked), 160 * time.Second, 0},
		"reads its failure slowly": {func(context.Context, *upstream.Call, func(jsonrpc.Message)) (*upstream.Answer, error) {
			return nil, &upstream.Failure{Cause: upstream.TooLarge, Sent: true, Detail: "too large"}
		}, 160 * time.Second, 0},
		"reads slowly that its result is none": {result(`{"content":7}`), 160 * time.Second, 0},
		"has a server that stops in its response": {func(ctx context.Context, _ *upstream.Call, _ func(jsonrpc.Message)) (*upstream.Answer, error) {
			<-ctx.Done()
			return nil, upstream.Interrupted(ctx, true)
		}, 0, 5 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			memory := budget.New(8 << 20)
			begin := func(who string, response step, reads time.Duration) *client {
				conv, _ := session(t, Limits{Flow: mrtr.Limits{Round: time.Hour}}, inputRequired(`"s"`, question1("q")), large(response))
				account, err := memory.Open(who)
				if err != nil {
					t.Fatal(err)
				}
				conv.Account = account
				c := &client{t: t, conv: conv}
				go conv.Serve(context.Background(), downstream.Caller{}, downstream.NewRequest(jsonrpc.Message{ID: "1", Method: mcp.MethodToolsCall, Params: []byte(book)}), &slowReader{c, reads})
				synctest.Wait()
				return c
			}
			alone, other := begin("alone", first.response, first.reads), begin("other", result(booked), 0)
			empty := fill(memory)
			alone.answer(0, `{"action":"decline"}`)
			pass(time.Second)
			other.answer(0, `{"action":"decline"}`)
			pass(first.keeps)
			if alone.over() {
				t.Errorf("who %s is done", name)
			}
			if !other.over() || other.response.Error != nil || !strings.Contains(string(other.response.Result), `"ok"`) {
				t.Errorf("beside one that %s the other one gets %v", name, other.response)
			}
			empty()
			pass(2 * time.Hour)
			if memory.Used() != 0 {
				t.Errorf("%d bytes are left charged", memory.Used())
			}
		})
	}
}

// TestTheTranslationOfARetrysResultMayHaveMoreThanThereIs: others filled the memory once it had come.
func TestTheTranslationOfARetrysResultMayHaveMoreThanThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocks := `{"content":[{"type":"text","text":""}` + strings.Repeat(`,{"type":"q"}`, 20_000) + `]}`
		memory := budget.New(64 << 20)
		var empty func()
		conv, _ := session(t, Limits{}, inputRequired(`"s"`, question1("q")), func(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
			answer, err := result(blocks)(ctx, call, notify)
			empty = fill(memory)
			return answer, err
		})
		accountOf(t, conv, memory)
		conv.Rules = &translate.Rules{Version: mcp.V20250618}
		c := request(t, conv, "1", mcp.MethodToolsCall, book)
		c.answer(0, `{"action":"decline"}`)
		synctest.Wait()
		if got := c.result(); strings.Count(got, `{\"type\":\"q\"}`) != 20_000 {
			t.Errorf("%.200s", got)
		}
		empty()
		if memory.Used() != 0 {
			t.Errorf("%d bytes are left charged", memory.Used())
		}
	})
}
