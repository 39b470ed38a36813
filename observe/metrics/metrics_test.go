package metrics

import (
	"bytes"
	"flag"
	"io"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
)

var update = flag.Bool("update", false, "write the tables of docs/observability.md anew")

const document = "../../docs/observability.md"

// The generated part of the document stands between these lines.
const (
	begin = "<!-- generated: make docs -->\n"
	end   = "<!-- end of the generated part -->\n"
)

func TestTheDocumentHasEveryMetric(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, begins := bytes.Cut(text, []byte(begin))
	present, tail, ends := bytes.Cut(rest, []byte(end))
	if !begins || !ends {
		t.Fatal("the lines that enclose the generated part are missing")
	}
	want := "\n" + RenderTables() + "\n"
	switch {
	case string(present) == want:
	case *update:
		fresh := bytes.Join([][]byte{head, []byte(begin), []byte(want), []byte(end), tail}, nil)
		if err := os.WriteFile(document, fresh, 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("docs/observability.md is not up to date; run `make docs`")
	}
}

// conventions are a copy of open-telemetry/semantic-conventions-genai,
// model/mcp/metrics.yaml and common.yaml (status: development): the attributes of each
// metric, but for those that are opt-in.
var conventions = map[string][]string{
	"mcp.server.operation.duration": {"mcp.method.name", "mcp.protocol.version", "gen_ai.operation.name", "error.type", "rpc.response.status_code",
		"network.transport", "network.protocol.name", "network.protocol.version", "gen_ai.tool.name", "gen_ai.prompt.name", "jsonrpc.protocol.version"},
	"mcp.client.operation.duration": {"mcp.method.name", "mcp.protocol.version", "gen_ai.operation.name", "error.type", "rpc.response.status_code",
		"network.transport", "network.protocol.name", "network.protocol.version", "gen_ai.tool.name", "gen_ai.prompt.name", "jsonrpc.protocol.version",
		"server.address", "server.port"},
	"mcp.server.session.duration": {"mcp.protocol.version", "network.protocol.name", "error.type", "jsonrpc.protocol.version"},
}

// The bridge leaves out which prompt it is, since clients write that, and that JSON-RPC
// is 2.0, which the conventions do not want said. Of sessions it tells the transport,
// which was an attribute of theirs in earlier versions.
var (
	leftOut = []string{"gen_ai.prompt.name", "jsonrpc.protocol.version"}
	added   = []string{"mcp.server.session.duration network_transport"}
)

// TestNamesAreThoseOfTheConventions: no label too few, none too many.
func TestNamesAreThoseOfTheConventions(t *testing.T) {
	buckets := []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
	found := 0
	for _, m := range table {
		attributes, conventional := conventions[m.otel]
		if !conventional {
			if !strings.HasPrefix(m.name, "mcpbridge_") {
				t.Errorf("%s is nobody's name", m.name)
			}
			continue
		}
		found++
		if want := strings.ReplaceAll(m.otel, ".", "_") + "_seconds"; m.name != want {
			t.Errorf("%s, want %s", m.name, want)
		}
		if !slices.Equal(m.buckets[:len(buckets)], buckets) {
			t.Errorf("%s does not begin with the buckets of the conventions", m.name)
		}
		for _, label := range m.labels {
			if label != "mount" && !strings.HasPrefix(label, "mcpbridge_") && !slices.Contains(added, m.otel+" "+label) &&
				!slices.ContainsFunc(attributes, func(a string) bool { return strings.ReplaceAll(a, ".", "_") == label }) {
				t.Errorf("%s: %s is no attribute of the conventions", m.name, label)
			}
		}
		for _, attribute := range attributes {
			if !slices.Contains(leftOut, attribute) && !slices.Contains(m.labels, strings.ReplaceAll(attribute, ".", "_")) {
				t.Errorf("%s lacks %s of the conventions", m.name, attribute)
			}
		}
	}
	if found != len(conventions) {
		t.Errorf("%d of %d metrics of the conventions", found, len(conventions))
	}
}

// everything makes one report of each kind, with what a hostile peer could put in.
func everything(m *Mount, text string) {
	m.SessionOpened(text, mcp.Version(text))
	m.CallEnded(observe.CallEnd{Method: text, Version: mcp.Version(text), End: observe.Failed, Cause: "server_error", Code: len(text), Took: time.Second, Rounds: 2})
	m.QuestionEnded(observe.Question{Kind: observe.URL, Version: mcp.Version(text), Outcome: observe.Accepted, Took: time.Minute})
	m.RequestEnded(observe.Request{Method: text, Version: mcp.Version(text), Result: observe.InputRequired, Took: time.Second})
	m.RequestEnded(observe.Request{Method: text, Version: mcp.Version(text), Result: observe.Error, Cause: "lost", Took: time.Second})
	m.SessionEnded(observe.Session{Version: mcp.Version(text), Transport: observe.Stdio, Reason: observe.Idle, Took: time.Hour})
	m.Refused(observe.BadOrigin)
	m.Resumed(observe.Gap)
	m.Distrusted(observe.Sampling)
	m.Passed(true)
	m.Modern(text, text)
	m.Repeated(observe.BrokenLine)
	m.Lost(mcp.Version(text), text)
	m.Cached(true)
	m.Overhead(observe.ToClient, time.Millisecond)
	m.Authorized(text, text)
}

func TestNoPeerMakesAnyLabelButItsName(t *testing.T) {
	r := NewRegistry("v0", "abc")
	everything(r.Mount("/mcp", observe.Server{Address: "server", Port: "80", Transport: "tcp"}), "evil-peer")
	text := scrape(r)
	for line := range strings.Lines(text) {
		if strings.Contains(line, "evil-peer") && !strings.HasPrefix(line, "mcpbridge_client") {
			t.Errorf("a peer made a label: %s", line)
		}
	}
	if !strings.Contains(text, `mcp_method_name="_OTHER"`) || !strings.Contains(text, `mcp_protocol_version="_OTHER"`) {
		t.Error("what is unknown does not count as _OTHER")
	}
}

func TestNamesOfClientsAreBounded(t *testing.T) {
	r := NewRegistry("v0", "abc")
	m := r.Mount("/mcp", observe.Server{Address: "server", Port: "80", Transport: "tcp"})
	for i := range 3 * maxClients {
		m.SessionOpened(strings.Repeat("x", i+1), mcp.V20250618)
	}
	m.SessionOpened("a\x00b\xff\n", mcp.V20250618)
	if n := strings.Count(scrape(r), "\nmcpbridge_clients_total{"); n > maxClients+1 {
		t.Errorf("%d clients, at most %d and _OTHER", n, maxClients)
	}
	if clean("a\x00b\xff\n") != "ab" {
		t.Errorf("%q", clean("a\x00b\xff\n"))
	}
}

// TestCountingAllocatesNothing: reports come on the path of a call.
func TestCountingAllocatesNothing(t *testing.T) {
	m := NewRegistry("v0", "abc").Mount("/mcp", observe.Server{Address: "server", Port: "80", Transport: "tcp"})
	var watch observe.Watcher = m
	if n := testing.AllocsPerRun(100, func() {
		watch.CallEnded(observe.CallEnd{Method: mcp.MethodToolsCall, Version: mcp.V20250618, Took: time.Second, Rounds: 1})
		watch.RequestEnded(observe.Request{Method: mcp.MethodToolsCall, Version: mcp.V20260728, Took: time.Second})
		watch.QuestionEnded(observe.Question{Version: mcp.V20250618})
		watch.SessionEnded(observe.Session{Version: mcp.V20250618})
		watch.Refused(observe.BadHost)
		watch.Repeated(observe.Busy)
		watch.Lost(mcp.V20250618, "audio")
		watch.Cached(true)
		watch.Authorized("token", "ok")
		watch.Overhead(observe.ToServer, time.Millisecond)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkCallEnded(b *testing.B) {
	var watch observe.Watcher = NewRegistry("v0", "abc").Mount("/mcp", observe.Server{Address: "server", Port: "80", Transport: "tcp"})
	b.ReportAllocs()
	for b.Loop() {
		watch.CallEnded(observe.CallEnd{Method: mcp.MethodToolsCall, Version: mcp.V20250618, Took: time.Second, Rounds: 1})
	}
}

// BenchmarkMixedCallsEnded is the same for kinds that take turns.
func BenchmarkMixedCallsEnded(b *testing.B) {
	var watch observe.Watcher = NewRegistry("v0", "abc").Mount("/mcp", observe.Server{Address: "server", Port: "80", Transport: "tcp"})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		watch.CallEnded(observe.CallEnd{Method: mcp.MethodToolsCall, Version: mcp.Legacy[i%2], Took: time.Second, Rounds: 1})
	}
}

func TestEveryMetricOfTheTableIsServed(t *testing.T) {
	r := NewRegistry("v0", "abc")
	r.Look(func() []State {
		return []State{{Mount: "/mcp", Ready: true, Sessions: map[Speaks]int{{mcp.V20250618, observe.StreamableHTTP}: 2}, Streams: map[Stream]int{{"call", "detached"}: 3}, Suspended: map[string]int{"client": 1}, Oldest: 41, Connections: 5, Server: Server{Era: "modern", Name: "s"}}, {Mount: "/run", Children: 2, ChildLimit: 3, Shared: 1, TokenExpires: time.Unix(1e9, 0)}}
	})
	r.Memory(fixedMemory{})
	r.Store(func() bool { return true })
	everything(r.Mount("/mcp", observe.Server{Address: "server", Port: "80", Transport: "tcp"}), mcp.MethodToolsCall)
	r.Traces(map[string]func() uint64{"sent": func() uint64 { return 7 }})
	text := scrape(r)
	for _, m := range table {
		if !strings.Contains(text, "# TYPE "+m.name+" "+string(m.kind)+"\n") {
			t.Errorf("%s is not served", m.name)
		}
	}
	for _, line := range []string{
		`mcpbridge_sessions{mount="/mcp",transport="streamable-http",version="2025-06-18"} 2`,
		`mcpbridge_streams{kind="call",mount="/mcp",state="detached"} 3`,
		`mcpbridge_reloads_total{result="refused"} 0`,
		`mcpbridge_flow_oldest_seconds{mount="/mcp"} 41`,
		`mcpbridge_upstream_ready{mount="/mcp"} 1`,
		`mcpbridge_upstream_connections{mount="/mcp",state="open"} 5`,
		`mcpbridge_children{mount="/run",state="session"} 2`,
		`mcpbridge_children{mount="/run",state="shared"} 1`,
		`mcpbridge_oauth_token_expiry_timestamp_seconds{mount="/run"} 1e+09`,
		`mcpbridge_oauth_total{mount="/mcp",outcome="_OTHER",step="_OTHER"} 1`,
		`mcp_server_session_duration_seconds_count{error_type="",mcp_protocol_version="_OTHER",mcpbridge_session_end="idle",mount="/mcp",network_protocol_name="",network_transport="pipe"} 1`,
		`mcpbridge_upstream_info{draft="",era="modern",mount="/mcp",server="s",server_version="",versions=""} 1`,
		`mcpbridge_upstream_repeats_total{mount="/mcp",reason="connection"} 1`,
		`mcpbridge_downlevel_total{mount="/mcp",what="_OTHER"} 1`,
		`mcpbridge_cache_requests_total{mount="/mcp",result="hit"} 1`,
		`mcpbridge_overhead_seconds_count{mount="/mcp",phase="response"} 1`,
		`mcpbridge_refused_total{mount="/mcp",reason="origin",status="403"} 1`,
		`mcpbridge_clients_total{client="tools/call",era="modern",mount="/mcp",version="_OTHER"} 1`,
		`mcpbridge_memory_bytes 1`, `mcpbridge_memory_limit_bytes 2`, `mcpbridge_memory_refused_total 3`,
		`mcpbridge_questions_total{kind="url",mount="/mcp",outcome="accept"} 1`,
		`mcpbridge_questions_total{kind="form",mount="/mcp",outcome="timeout"} 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("missing: %s", line)
		}
	}
}

type fixedMemory struct{}

func (fixedMemory) Used() int64    { return 1 }
func (fixedMemory) Limit() int64   { return 2 }
func (fixedMemory) Refused() int64 { return 3 }

func scrape(r *Registry) string {
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text, _ := io.ReadAll(w.Body)
	return string(text)
}
