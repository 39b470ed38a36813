package tap

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/observe/record"
)

func TestThePaceOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := NewHub(record.NewRedactor(false))
		watch := hub.Mount("/mcp", observe.Server{}).Remember(observe.Nobody{})
		watch.CallEnded(observe.CallEnd{})
		if got := hub.Pace("/mcp"); got != (observe.Pace{Calls: 1, Lately: 1}) {
			t.Errorf("%+v", got)
		}
		for range 300 {
			time.Sleep(time.Second)
			watch.CallEnded(observe.CallEnd{})
			hub.Pace("/mcp")
			hub.Pace("/mcp")
		}
		watch.CallEnded(observe.CallEnd{ToolError: true})
		watch.CallEnded(observe.CallEnd{End: observe.Cancelled, Cause: "operator"}) // as somebody wanted
		got := hub.Pace("/mcp")
		if got != (observe.Pace{Calls: 303, Failed: 1, Lately: 62, LatelyFailed: 1}) {
			t.Errorf("%+v", got)
		}
		time.Sleep(time.Hour) // nobody looks
		if got := hub.Pace("/mcp"); got != (observe.Pace{Calls: 303, Failed: 1}) {
			t.Errorf("an hour later: %+v", got)
		}
		if hub.Mount("/mcp", observe.Server{}).pace != hub.paceOf("/mcp") || hub.Pace("/other") != (observe.Pace{}) {
			t.Error("a reload begins anew, or mounts are mixed")
		}
	})
}
