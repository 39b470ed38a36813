package view

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
)

// failing is a view of one session, whose calls failed so long ago.
func failing(omitted []observe.Omission, ago ...time.Duration) *View {
	sight := observe.Sight{ID: "S1", Began: now, Conversation: observe.Conversation{Version: mcp.V20250618, ClientInfo: []byte(`{"name":"its-client"}`)}}
	mount := Mount{Path: "/mcp", Ready: true, Sessions: []observe.Sight{sight}, Omissions: omitted, Pace: observe.Pace{Calls: 9, Failed: uint64(len(ago))}}
	return New(Options{Look: func() []Mount { return []Mount{mount} }, Recording: &tape{}, Messages: func(uint64) []observe.Event { return nil },
		Ends: func(most int, wanted func(*observe.Ended) bool) (found []observe.Ended) {
			for _, d := range ago {
				e := observe.Ended{At: time.Now().Add(-d), Mount: "/mcp", CallEnd: observe.CallEnd{Method: mcp.MethodToolsCall, Name: "book", ID: "f1", Session: "S1", End: observe.Failed, Cause: "lost"}}
				if len(found) < most && wanted(&e) {
					found = append(found, e)
				}
			}
			return found
		}})
}

// TestFailuresStayOnTheOverview: the last three, and only new ones call for a look.
func TestFailuresStayOnTheOverview(t *testing.T) {
	_, body := get(failing(nil, time.Second, time.Hour, time.Hour, time.Hour), "/")
	for _, want := range []string{"Failed lately", `<b>book</b> of <a href="/session?mount=%2fmcp&amp;id=S1">its-client</a>`, "The connection to the server broke before its answer came.", `9, <a href="/ended">4 of them failed</a>`} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not in %s", want, body)
		}
	}
	if all, fresh := strings.Count(body, `<li class="fail`), strings.Count(body, `<li class="fail grave"`); all != 3 || fresh != 1 {
		t.Errorf("%d failures, %d of them grave", all, fresh)
	}
	if _, body = get(failing(nil), "/"); strings.Contains(body, "Failed lately") {
		t.Error("no call failed, and there is a list of those that did")
	}
}

// TestWhatIsNotOfferedSaysWhatToDo: once on the overview, and on the pages of sessions,
// with a link to its entry.
func TestWhatIsNotOfferedSaysWhatToDo(t *testing.T) {
	v := failing([]observe.Omission{{Method: mcp.MethodToolsList, Name: "draw_chart", Reason: "bad header"}})
	_, server := get(v, "/server")
	id := anchor("/mcp", mcp.MethodToolsList, "draw_chart")
	if !strings.Contains(server, `id="`+id+`"`) {
		t.Errorf("no anchor %s", id)
	}
	for _, page := range []string{"/", "/session?mount=/mcp&id=S1"} {
		_, body := get(v, page)
		if strings.Count(body, "not offered draw_chart: bad header") != 1 || strings.Count(body, "draw_chart") > 2 {
			t.Errorf("%s names it %d times", page, strings.Count(body, "draw_chart"))
		}
		if !strings.Contains(body, "until then clients do not see it") || !strings.Contains(body, `href="/server#`+id+`"`) {
			t.Errorf("%s: no advice or no link: %s", page, body)
		}
	}
}

// TestCardsNameTheClientAndLeadToTheSession: those of calls under way, and of ended ones.
func TestCardsNameTheClientAndLeadToTheSession(t *testing.T) {
	_, body := get(failing(nil, time.Second), "/ended")
	_, live := get(crowded(1, false), "/waiting")
	for want, in := range map[string]string{" of its-client ": body, `session <a href="/session?mount=%2fmcp&amp;id=S1">S1</a>`: body,
		"</a> of &lt;script&gt;": live, `session <a href="/session?mount=%2fmcp&amp;id=S0">S0</a>`: live} {
		if !strings.Contains(in, want) {
			t.Errorf("%q is not in %s", want, in)
		}
	}
}
