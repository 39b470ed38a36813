package view

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
)

// TestThePageOfServersHasTheWayThere: what is kept and its age, processes, and what
// they printed last, which is no markup.
func TestThePageOfServersHasTheWayThere(t *testing.T) {
	way := observe.Behind{Command: true, Shared: 1, Children: 2, ChildLimit: 32, Listens: 3, Reconnecting: 1,
		Cached:  []observe.CachedResults{{Method: mcp.MethodToolsList, Results: 2, Bytes: 4096, Oldest: time.Now().Add(-time.Minute), Newest: time.Now(), Until: time.Now().Add(time.Minute)}},
		Printed: []observe.Printed{{At: now, PID: 4711, Text: "<b>panic</b>: no database"}, {At: now, PID: 4712, Text: "later"}}}
	v := New(Options{Look: func() []Mount { return []Mount{{Path: "/mcp", Behind: func() observe.Behind { return way }}} }, Recording: &tape{}})
	_, body := get(v, "/server")
	for _, part := range []string{"one for all sessions, 2 of 32", "3 open, 1 about to be", "process 4711", "&lt;b&gt;panic&lt;/b&gt;: no database", `data-of="bytes">4096`, "to 60 s"} {
		if !strings.Contains(body, part) {
			t.Errorf("%q is not on the page", part)
		}
	}
	if strings.Index(body, "process 4712") > strings.Index(body, "process 4711") {
		t.Error("the latest line does not stand first")
	}
	way = observe.Behind{Connections: 5}
	if _, body = get(v, "/server"); !strings.Contains(body, "5 open") || strings.Contains(body, "standard error") {
		t.Error("a server over HTTP has connections and no processes")
	}
}

func TestTheOverviewHasThePace(t *testing.T) {
	mount := Mount{Path: "/mcp", Ready: true, Pace: observe.Pace{Calls: 12, Failed: 3, Lately: 2, LatelyFailed: 1}}
	v := New(Options{Look: func() []Mount { return []Mount{mount} }, Recording: &tape{}})
	if _, body := get(v, "/"); !strings.Contains(body, `12, <a href="/ended">3 of them failed</a>; 2 in the last minute, 1 of them failed`) {
		t.Error(body)
	}
}
