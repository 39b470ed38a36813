package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
)

// listed is a list of tools as the tap reports it.
func listed(names ...string) observe.Request {
	return observe.Request{Method: mcp.MethodToolsList, Answer: []byte(`{"tools":[{"name":"` + strings.Join(names, `"},{"name":"`) + `"}]}`)}
}

func called(name string) observe.CallEnd {
	return observe.CallEnd{Method: mcp.MethodToolsCall, Tool: []byte(`"` + name + `"`), Version: mcp.V20250618, Transport: observe.StreamableHTTP, HTTP: observe.HTTP11}
}

func TestToolsAreNotToldApartUnlessAsked(t *testing.T) {
	r := NewRegistry("v0", "abc")
	m := r.Mount("/mcp", observe.Server{})
	m.RequestEnded(listed("search"))
	m.CallEnded(called("search"))
	if text := scrape(r); strings.Contains(text, "search") {
		t.Error("a tool is named without metrics.tools")
	}
}

// TestToolsAreThoseThatTheServerListed: what clients call, and what a server lists
// without end, are no labels.
func TestToolsAreThoseThatTheServerListed(t *testing.T) {
	r := NewRegistry("v0", "abc")
	r.NameTools()
	m := r.Mount("/mcp", observe.Server{Address: "server", Transport: "tcp"})
	m.CallEnded(called("search"))
	m.RequestEnded(listed("search", `es\u0063aped`, `bell\u0007`, strings.Repeat("x", maxToolName+1)))
	m.CallEnded(called("search"))
	m.CallEnded(called("escaped"))
	m.CallEnded(called("made-up"))
	m.CallEnded(observe.CallEnd{Method: mcp.MethodPing})
	m.RequestEnded(observe.Request{Method: mcp.MethodToolsCall, Params: []byte(`{"name":"search"}`), HTTP: observe.HTTP2})
	for i := range 3 * maxTools {
		name := fmt.Sprint("churn", i)
		m.RequestEnded(listed(name))
		m.CallEnded(called(name))
	}
	text := scrape(r)
	for _, part := range []string{`gen_ai_tool_name="search"`, `gen_ai_tool_name="escaped"`, `gen_ai_tool_name="_OTHER"`, `gen_ai_tool_name=""`} {
		if !strings.Contains(text, part) {
			t.Errorf("%s is missing", part)
		}
	}
	for _, part := range []string{"made-up", "bell", "xxxxx"} {
		if strings.Contains(text, part) {
			t.Errorf("%s is a label", part)
		}
	}
	if n := strings.Count(text, "mcp_server_operation_duration_seconds_count{"); n > maxTools+2 {
		t.Errorf("%d series, for %d tools", n, maxTools)
	}
	if want := `mcp_client_operation_duration_seconds_count{error_type="",gen_ai_operation_name="execute_tool",gen_ai_tool_name="search"`; !strings.Contains(text, want) || !strings.Contains(text, `network_protocol_version="2"`) {
		t.Error("rounds are not told apart")
	}
}

func TestCountingByToolAllocatesNothing(t *testing.T) {
	r := NewRegistry("v0", "abc")
	r.NameTools()
	m := r.Mount("/mcp", observe.Server{})
	list := listed("search")
	m.RequestEnded(list)
	call, round := called("search"), observe.Request{Method: mcp.MethodToolsCall, Params: []byte(`{"name":"search"}`)}
	if n := testing.AllocsPerRun(100, func() { m.CallEnded(call); m.RequestEnded(round); m.RequestEnded(list) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestServersMakeFewLabels: a server that calls itself something else each time does not
// fill the scraper.
func TestServersMakeFewLabels(t *testing.T) {
	r := NewRegistry("v0", "abc")
	said := Server{Era: "modern"}
	r.Look(func() []State { return []State{{Mount: "/mcp", Server: said}} })
	seen := map[string]bool{}
	for i := range 100 {
		said.Name, said.Version, said.Draft = fmt.Sprint("server", i), fmt.Sprint("v", i), fmt.Sprint("DRAFT-", i)
		said.Versions = fmt.Sprintf("2026-07-28 9999-%d 2025-06-18 9998-%d", i, i)
		for line := range strings.Lines(scrape(r)) {
			if strings.HasPrefix(line, upstreamInfo.name+"{") {
				seen[line] = true
			}
		}
	}
	if len(seen) != maxServers+1 {
		t.Errorf("%d series", len(seen))
	}
	for line := range seen {
		if !strings.Contains(line, `versions="2026-07-28 _OTHER 2025-06-18"`) {
			t.Errorf("%s", line)
		}
	}
}

func TestAnErrorOfASession(t *testing.T) {
	for want, s := range map[string]observe.Session{
		"":           {Reason: observe.Deleted, Broken: true},
		"evicted":    {Reason: observe.Displaced},
		"connection": {Reason: observe.Disconnected, Broken: true, Took: time.Second},
	} {
		if got := faultOf(&s); got != want {
			t.Errorf("%v: %q, want %q", s, got, want)
		}
	}
	if faultOf(&observe.Session{Reason: observe.Disconnected}) != "" {
		t.Error("a client that goes is no error")
	}
}
