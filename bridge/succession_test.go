package bridge

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/ask"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/upstream"
)

// succeed returns a bridge with other settings that takes the place of this one, for the same crowd.
func (c *crowd) succeed(limits Limits, steps ...step) (*crowd, *script) {
	up := &script{steps: steps}
	b := New(Options{
		Upstream: up, Log: zerolog.Nop(), Limits: limits, Wait: 20 * time.Second,
		Ask: ask.New(ask.Options{Server: "flights", Policy: ask.Page, Desk: c.desk}),
	})
	b.Succeed(c.b)
	c.t.Cleanup(b.Close)
	return &crowd{c.t, b, c.person}, up
}

const bookFlight = `{"name":"book"}`

// slowly is a step that takes until release is closed.
func slowly(release <-chan struct{}, then step) step {
	return func(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
		<-release
		return then(ctx, call, notify)
	}
}

// What waits without a session is found by the bridge that takes the place of another one, and by the next: nobody
// is asked twice, and nothing done twice.
func TestCallsWithoutASessionGoOnAtTheNextBridge(t *testing.T) {
	for name, when := range map[string]struct{ before, twice bool }{
		"answered before": {before: true}, "answered afterwards": {}, "answered two bridges later": {twice: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, up := newCrowd(t, Limits{}, ask.Page, inputRequired(`"s"`, form1("q")), result(booked))
				first := c.call("ada", bookFlight)
				pass(20 * time.Second)
				if when.before {
					c.answer(linkOf(t, first.result()), "f0=Ada&action=accept")
				}
				next, _ := c.succeed(Limits{})
				if when.twice {
					last, _ := next.succeed(Limits{})
					next.b.Close() // which ends what is its own
					next = last
				}
				if !when.before {
					c.answer(linkOf(t, first.result()), "f0=Ada&action=accept")
				}
				if c.b.Waiting() != 1 || next.b.Waiting() != 0 {
					t.Errorf("%d wait at the first bridge, %d at the next", c.b.Waiting(), next.b.Waiting())
				}
				if got := next.call("eve", bookFlight).response; got == nil || got.Error == nil { // whose server has no step
					t.Errorf("somebody else got %+v", got)
				}
				if got := next.call("ada", bookFlight).result(); !strings.Contains(got, `"ok"`) || len(up.calls()) != 2 {
					t.Errorf("the same call got %s after %d requests", got, len(up.calls()))
				}
				if c.b.Waiting() != 0 {
					t.Error("it waits still")
				}
			})
		})
	}
}

// What a call came to whose client lost its connection waits for the same call at the next bridge.
func TestAnOutcomeWithoutASessionIsFetchedFromTheNextBridge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c, up := newCrowd(t, Limits{}, ask.Page, inputRequired(`"s"`, form1("q")), slowly(release, result(booked)))
		first := c.call("ada", bookFlight)
		pass(20 * time.Second)
		c.answer(linkOf(t, first.result()), "f0=Ada&action=accept")
		c.call("ada", bookFlight).gone.Store(true)
		close(release)
		synctest.Wait()
		next, _ := c.succeed(Limits{})
		if got := next.call("ada", bookFlight).result(); !strings.Contains(got, `"ok"`) || len(up.calls()) != 2 {
			t.Errorf("the same call got %s after %d requests", got, len(up.calls()))
		}
		if c.b.Waiting() != 0 {
			t.Error("it is kept still")
		}
	})
}

// A principal has as many as one bridge allows, however many there are; and what is left when a bridge ends ends
// with it: its page says so, and the same call is another one.
func TestCallsWithoutASessionAreBoundedAcrossBridgesAndEndWithTheirs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ask1 := inputRequired(`"s"`, form1("q"))
		c, _ := newCrowd(t, Limits{}, ask.Page, ask1, ask1)
		old := c.call("ada", bookFlight)
		c.call("ada", `{"name":"book","arguments":{"n":2}}`)
		pass(20 * time.Second)
		next, _ := c.succeed(Limits{FlowsPerSession: 2}, ask1, ask1)
		next.call("ada", `{"name":"book","arguments":{"n":3}}`)
		pass(20 * time.Second)
		if c.b.Waiting() != 1 || next.b.Waiting() != 1 {
			t.Errorf("%d and %d wait", c.b.Waiting(), next.b.Waiting())
		}
		if status, _ := c.open(linkOf(t, old.result())); status != http.StatusGone {
			t.Errorf("the oldest is open: %d", status)
		}
		c.b.Close()
		synctest.Wait()
		if c.b.Waiting() != 0 || next.b.Waiting() != 1 || c.desk.Len() != 1 {
			t.Errorf("afterwards %d and %d wait, %d are asked", c.b.Waiting(), next.b.Waiting(), c.desk.Len())
		}
	})
}

// A request that goes on with a call of the bridge before has that one wait for it.
func TestABridgeDrainsWhatTheNextOneWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c, _ := newCrowd(t, Limits{}, ask.Page, inputRequired(`"s"`, form1("q")), slowly(release, result(booked)))
		first := c.call("ada", bookFlight)
		pass(20 * time.Second)
		c.answer(linkOf(t, first.result()), "f0=Ada&action=accept")
		next, _ := c.succeed(Limits{})
		again := next.call("ada", bookFlight)
		drained := make(chan struct{})
		go func() { defer close(drained); c.b.Drain(t.Context()); c.b.Close() }()
		pass(time.Minute)
		select {
		case <-drained:
			t.Error("it ends with the call under way")
		default:
		}
		close(release)
		<-drained
		if got := again.result(); !strings.Contains(got, `"ok"`) {
			t.Errorf("the call got %s", got)
		}
	})
}
