package bridge

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/upstream"
)

// A call that has asked its client, and is at the server when the bridge stops for good, goes on in another process
// if it may be done twice, as after kill -9. Of any other its client is told that nobody knows whether it was done.
func TestACallAtTheServerIsLeftIfItMayBeDoneTwice_D15(t *testing.T) {
	tools := `{"tools":[{"name":"book","inputSchema":{"type":"object"},"annotations":{"idempotentHint":HINT}}]}`
	for hint, repeats := range map[string]bool{"true": true, "false": false} {
		t.Run(hint, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here, _ := session(t, Limits{}, result(strings.Replace(tools, "HINT", hint, 1)), inputRequired(`"s"`, question1("q")), hang)
				request(t, here, "1", mcp.MethodToolsList, `{}`).result()
				s := &strongbox{client: &client{t: t, conv: here}}
				s.begin()
				s.answer(0, accepted)
				synctest.Wait()
				here.Close(downstream.ErrStopping)
				synctest.Wait()
				if s.left != repeats || s.over() == repeats {
					t.Fatalf("left %v, over %v", s.left, s.over())
				}
				if !repeats {
					if got := s.rpcError().Message; !strings.Contains(got, "whether the call was executed is not known") {
						t.Errorf("its client is told %q", got)
					}
					return
				}
				there, up := session(t, Limits{}, result(booked))
				next := &strongbox{client: &client{t: t, conv: there}, held: s.held}
				if err := there.Resume(downstream.Caller{}, s.kept[len(s.kept)-1].Record, next); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if got := next.result(); !strings.Contains(got, `"ok"`) || len(up.calls()) != 1 {
					t.Errorf("the next process got %s in %d rounds", got, len(up.calls()))
				}
			})
		})
	}
}

// repeatable is a call that may be done twice, has asked its client, and will be at the server once that has answered.
func repeatable(t *testing.T) (*conversation, *strongbox) {
	t.Helper()
	tools := `{"tools":[{"name":"book","inputSchema":{"type":"object"},"annotations":{"idempotentHint":true}}]}`
	conv, _ := session(t, Limits{}, result(tools), inputRequired(`"s"`, question1("q")), hang)
	request(t, conv, "1", mcp.MethodToolsList, `{}`).result()
	s := &strongbox{client: &client{t: t, conv: conv}}
	s.begin()
	return conv, s
}

// An answer that is not kept is none: the call goes on waiting for it, in the store alone.
func TestACallWhoseAnswerIsNotKeptGoesOnWaiting_D15(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, s := repeatable(t)
		s.err = errors.New("the disk is full")
		err := here.Answer(downstream.Caller{}, jsonrpc.Message{ID: s.client.asked()[0].ID, Result: []byte(accepted)})
		synctest.Wait()
		if !errors.Is(err, downstream.ErrNotHere) || !s.left || s.over() {
			t.Errorf("%v, left %v, over %v", err, s.left, s.over())
		}
	})
}

// What may be done twice is not done again for a call whose time is over: nobody would hear of it.
func TestACallWhoseTimeIsOverIsNotSentAgain_D15(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := repeatable(t)
		s.answer(0, accepted)
		synctest.Wait()
		record := s.kept[len(s.kept)-1].Record
		b := &Bridge{}
		due, err := b.Due(record)
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Until(due))
		there, up := session(t, Limits{}, result(booked))
		next := &strongbox{client: &client{t: t, conv: there}, held: s.held}
		if err := there.Resume(downstream.Caller{}, record, next); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := next.result(); !strings.Contains(got, "timeouts.flow") || len(up.calls()) != 0 {
			t.Errorf("the next process got %s in %d rounds", got, len(up.calls()))
		}
		if _, err := b.Due([]byte("{")); err == nil {
			t.Error("what is no record is due")
		}
	})
}

// Nobody else would look after it before its time is up.
func TestACallThatWaitsForItsServerIsDueWhenItGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := failure(&upstream.Failure{Cause: upstream.Unreachable, Detail: "refused"})
		here, _, s := keeping(t, inputRequired(`"s"`, question1("q")), down, down)
		s.answer(0, accepted)
		here.Leave()
		synctest.Wait()
		due, err := new(Bridge).Due(s.kept[len(s.kept)-1].Record)
		if wait := time.Until(due); err != nil || wait <= 0 || wait > mrtr.DefaultRound {
			t.Errorf("the call is due in %v (%v)", wait, err)
		}
	})
}

// A call of who knew no more than the session's id does not go on with the credentials of its owner, who brings it
// back.
func TestACallOfAVisitorIsNotBroughtBackWithTheOwnersCredentials_H6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := repeatable(t)
		s.answer(0, accepted)
		synctest.Wait()
		owner := downstream.Caller{Principal: "owner", Authorization: "Bearer owner", Also: []string{"owner before"}}
		for whose, want := range map[string]string{"visitor": "", "owner": "Bearer owner", "owner before": "Bearer owner"} {
			flow, err := mrtr.Decode(s.kept[len(s.kept)-1].Record)
			if err != nil {
				t.Fatal(err)
			}
			flow.Principal = whose
			record, err := flow.Encode()
			if err != nil {
				t.Fatal(err)
			}
			there, up := session(t, Limits{}, result(booked))
			next := &strongbox{client: &client{t: t, conv: there}, held: s.held}
			if err := there.Resume(owner, record, next); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if calls := up.calls(); len(calls) != 1 || calls[0].Authorization != want {
				t.Errorf("that of %s goes on with %q in %d rounds", whose, calls[0].Authorization, len(calls))
			}
		}
	})
}
