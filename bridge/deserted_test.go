package bridge

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
)

func TestCallOfAClientThatHasNoWayBackEndsAfterTheGracePeriod_E23(t *testing.T) {
	for name, first := range map[string]step{
		"running": hang,
		"asking":  inputRequired(`"s"`, question1("q")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conv, _ := session(t, Limits{Flow: mrtr.Limits{Grace: time.Minute, Round: time.Hour}}, first)
				c := request(t, conv, "1", mcp.MethodToolsCall, book)
				pass(10 * time.Second)
				c.gone.Store(true)
				pass(time.Minute)
				if c.over() {
					t.Fatal("the call did not outlive its client for the grace period")
				}
				pass(time.Minute)
				if got := c.result(); !strings.Contains(got, "timeouts.grace") {
					t.Errorf("the call ended with %s", got)
				}
				if n := len(conv.table.calls) + conv.table.questions.len(); n != 0 {
					t.Errorf("%d calls and questions are left", n)
				}
			})
		})
	}
}

func TestCallOfAClientThatIsThereOrCameBackGoesOn_E23(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conv, _ := session(t, Limits{Flow: mrtr.Limits{Grace: time.Minute}}, inputRequired(`"s"`, question1("q")), result(booked))
		c := request(t, conv, "1", mcp.MethodToolsCall, book)
		pass(3 * time.Minute)
		for range 3 {
			c.gone.Store(true)
			pass(time.Minute)
			c.gone.Store(false)
			pass(time.Minute)
		}
		c.answer(0, `{"action":"accept"}`)
		c.result()
	})
}

func TestCallsAreAnsweredWhenTheBridgeStops(t *testing.T) {
	for name, first := range map[string]step{
		"running": hang,
		"asking":  inputRequired(`"s"`, question1("q")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conv, _ := session(t, Limits{}, first)
				c := request(t, conv, "1", mcp.MethodToolsCall, book)
				conv.Close(downstream.ErrStopping)
				synctest.Wait()
				if e := c.rpcError(); !strings.Contains(e.Message, "shutting down") || strings.Contains(e.Message, "is not known") != (name == "running") {
					t.Errorf("got %v", e)
				}
				if n := len(c.notified(mcp.NotificationCancelled)); n != len(c.asked()) {
					t.Errorf("C-35: %d of %d questions were withdrawn", n, len(c.asked()))
				}
			})
		})
	}
}
