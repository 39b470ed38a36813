package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/mcpbridge/bridge/internal/peers"
	"github.com/mcpbridge/bridge/internal/testport"
)

// spansOf makes a call of three rounds with two questions through a bridge that traces,
// and returns what a collector got, and the contexts that the server was handed.
func spansOf(t *testing.T, meta sdk.Meta) (spans []*tracepb.Span, handed []string) {
	t.Helper()
	var mu sync.Mutex
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var data tracepb.TracesData
		if err := proto.Unmarshal(body, &data); err != nil {
			t.Error(err)
			return
		}
		if bytes.Contains(body, []byte("Lovelace")) {
			t.Error("a span tells what a call says")
		}
		mu.Lock()
		defer mu.Unlock()
		spans = append(spans, data.ResourceSpans[0].ScopeSpans[0].Spans...)
	}))
	t.Cleanup(collector.Close)
	server := peers.NewServer(t, peers.ServerOptions{Wrap: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			var msg struct {
				Params struct {
					Meta map[string]json.RawMessage `json:"_meta"`
				}
			}
			_ = json.Unmarshal(body, &msg)
			if r.Header.Get("Mcp-Name") == "book" {
				mu.Lock()
				handed = append(handed, r.Header.Get("Traceparent")+" "+strings.Trim(string(msg.Params.Meta["traceparent"]), `"`))
				mu.Unlock()
			}
			next.ServeHTTP(w, r)
		})
	}})
	p := startWith(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL}, "serve", "--upstream", server.URL, "--listen", "127.0.0.1:0")
	bookWith(t, p.address, meta)
	p.stop()
	if err := p.wait(); err != nil {
		t.Error(err)
	}
	return spans, handed
}

// TestACallIsOneTraceOfBothHops: one SERVER span, one CLIENT span for each round and each
// question, and the server gets each round's context in _meta and as a header.
func TestACallIsOneTraceOfBothHops(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	spans, handed := spansOf(t, sdk.Meta{"traceparent": parent})
	kinds := map[string]int{}
	var server *tracepb.Span
	for _, s := range spans {
		if hex.EncodeToString(s.TraceId) != parent[3:35] {
			continue // of another call of the session
		}
		kinds[s.Kind.String()+" "+s.Name]++
		if s.Kind == tracepb.Span_SPAN_KIND_SERVER {
			server = s
		}
	}
	if kinds["SPAN_KIND_SERVER tools/call book"] != 1 || kinds["SPAN_KIND_CLIENT tools/call book"] != 3 || kinds["SPAN_KIND_CLIENT elicitation/create"] != 2 || len(kinds) != 3 {
		t.Fatalf("%v", kinds)
	}
	if hex.EncodeToString(server.ParentSpanId) != parent[36:52] {
		t.Errorf("%v", server)
	}
	for _, s := range spans { // all are over HTTP, on both hops
		said := fmt.Sprint(s.Attributes)
		if !strings.Contains(said, "network.protocol.name") || !strings.Contains(said, "network.protocol.version") {
			t.Errorf("%s: %s", s.Name, said)
		}
	}
	ids := map[string]bool{}
	for _, s := range spans {
		if s.Kind == tracepb.Span_SPAN_KIND_CLIENT && bytes.Equal(s.ParentSpanId, server.SpanId) {
			ids["00-"+parent[3:35]+"-"+hex.EncodeToString(s.SpanId)+"-01"] = true
		}
	}
	if len(handed) != 3 || len(ids) != 5 {
		t.Fatalf("%q %v", handed, ids)
	}
	for _, contexts := range handed {
		header, inMeta, _ := strings.Cut(contexts, " ")
		if header != inMeta || !ids[header] {
			t.Errorf("the server was handed %s, and spans are %v", contexts, ids)
		}
	}
}

// TestAnUnsampledCallPassesAsItCame: its context goes up untouched.
func TestAnUnsampledCallPassesAsItCame(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	spans, handed := spansOf(t, sdk.Meta{"traceparent": parent})
	for _, s := range spans {
		if hex.EncodeToString(s.TraceId) == parent[3:35] {
			t.Errorf("%v", s)
		}
	}
	if len(handed) != 3 || handed[0] != " "+parent {
		t.Errorf("%q", handed)
	}
}

func TestVariablesOfTracesThatAreWrongEndTheStart(t *testing.T) {
	err := fails(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_TRACES_SAMPLER=odd"}, "serve", "--upstream", deadURL, "--listen", "127.0.0.1:0")
	if !strings.Contains(err.Error(), "OTEL_TRACES_SAMPLER") {
		t.Error(err)
	}
}

// TestARealCollectorTakesTheSpans: one that test/otel builds, whose path OTEL_COLLECTOR has.
func TestARealCollectorTakesTheSpans(t *testing.T) {
	program := os.Getenv("OTEL_COLLECTOR")
	if program == "" {
		t.Skip("OTEL_COLLECTOR does not name a collector; `.ci/run traces` builds one")
	}
	address, err := testport.Free()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	collector := exec.CommandContext(ctx, program, address)
	out, err := collector.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := collector.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = collector.Process.Kill()
		_ = collector.Wait() // it was killed
	}()
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("the collector says %q", lines.Text())
	}
	p := startWith(t, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + address, "OTEL_SERVICE_NAME=bridge-of-the-test", "OTEL_BSP_SCHEDULE_DELAY=10",
		"OTEL_EXPORTER_OTLP_COMPRESSION=gzip"}, "serve", "--upstream", peers.NewServer(t, peers.ServerOptions{}).URL, "--listen", "127.0.0.1:0")
	book(t, p.address)
	found := map[string]int{}
	for found["Server tools/call book"] == 0 && lines.Scan() {
		var s struct{ Name, Kind, Service string }
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil || s.Service != "bridge-of-the-test" {
			t.Fatalf("%s %v", lines.Text(), err)
		}
		t.Log(lines.Text())
		found[s.Kind+" "+s.Name]++
	}
	if found["Client tools/call book"] != 3 || found["Client elicitation/create"] != 2 {
		t.Errorf("%v", found)
	}
}

// TestAResumedCallKeepsItsTrace: what the next process does of a call is in the trace of
// its caller, below what the first one did.
func TestAResumedCallKeepsItsTrace(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	var mu sync.Mutex
	var spans []*tracepb.Span
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var data tracepb.TracesData
		if err := proto.Unmarshal(body, &data); err != nil {
			t.Error(err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		spans = append(spans, data.ResourceSpans[0].ScopeSpans[0].Spans...)
	}))
	defer collector.Close()
	a := newAsker(t)
	server := httptest.NewServer(a)
	defer server.Close()
	args := []string{"serve", "--listen=127.0.0.1:0", "--upstream", server.URL, "--timeouts.drain=100ms", "--store.url", "file:" + filepath.Join(t.TempDir(), "sessions.db")}
	environ := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL}
	p := startWith(t, environ, args...)
	k := &killable{t: t, url: "http://" + p.address + "/mcp"}
	k.session = k.request(http.MethodPost, initializeAsking).Header.Get("Mcp-Session-Id")
	f := k.follow(k.request(http.MethodPost, `{"jsonrpc":"2.0","id":"call","method":"tools/call","params":{"name":"ask","arguments":{},"_meta":{"traceparent":"`+parent+`"}}}`))
	id := fmt.Sprint(f.message()["id"])
	p.stop()
	if err := p.wait(); err != nil {
		t.Error(err)
	}
	next := startWith(t, environ, args...)
	k.url = "http://" + next.address + "/mcp"
	k.answer(id)
	wantDone(t, k.resume(f.last).message())
	next.stop()
	if err := next.wait(); err != nil {
		t.Error(err)
	}
	var servers, questions []*tracepb.Span
	for _, s := range spans {
		if s.Name == "elicitation/create" {
			questions = append(questions, s)
		}
		if s.Kind == tracepb.Span_SPAN_KIND_SERVER && s.Name == "tools/call ask" {
			servers = append(servers, s)
		}
		if hex.EncodeToString(s.TraceId) != parent[3:35] {
			t.Errorf("%s %s is in the trace %x", s.Kind, s.Name, s.TraceId)
		}
	}
	if len(servers) != 2 || hex.EncodeToString(servers[0].ParentSpanId) != parent[36:52] || !bytes.Equal(servers[1].ParentSpanId, servers[0].SpanId) {
		t.Fatalf("%v", servers)
	}
	// The question was open meanwhile: it is one span, over both processes, without an error.
	if len(questions) != 1 || questions[0].StartTimeUnixNano >= servers[0].EndTimeUnixNano || questions[0].EndTimeUnixNano <= servers[1].StartTimeUnixNano ||
		questions[0].Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR || !bytes.Equal(questions[0].ParentSpanId, servers[1].SpanId) {
		t.Errorf("%v", questions)
	}
}
