package traces

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collector takes spans as a collector does.
type collector struct {
	t      *testing.T
	url    string
	mu     sync.Mutex
	header http.Header
	spans  map[string]*tracepb.Span // by name
}

func newCollector(t *testing.T) *collector {
	c := &collector{t: t, spans: map[string]*tracepb.Span{}}
	srv := httptest.NewServer(c)
	t.Cleanup(srv.Close)
	c.url = srv.URL
	return c
}

func (c *collector) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var in io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		in, _ = gzip.NewReader(r.Body)
	}
	body, _ := io.ReadAll(in)
	var data tracepb.TracesData
	if err := proto.Unmarshal(body, &data); err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.t.Errorf("%s %s %v", r.URL, r.Header, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.header = r.Header
	for _, of := range data.ResourceSpans {
		for _, scoped := range of.ScopeSpans {
			for _, s := range scoped.Spans {
				c.spans[s.Name] = s
			}
		}
	}
}

func environ(pairs ...string) func(string) string {
	return func(name string) string {
		for _, pair := range pairs {
			if value, ok := strings.CutPrefix(pair, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

func tracer(t *testing.T, pairs ...string) *Tracer {
	t.Helper()
	made, err := FromEnviron(environ(pairs...), "v1")
	if err != nil || made == nil {
		t.Fatal(made, err)
	}
	return made
}

const (
	metaParent   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	headerParent = "00-11111111111111111111111111111111-2222222222222222-01"
)

func TestACallIsOneTrace(t *testing.T) {
	c := newCollector(t)
	tr := tracer(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.url, "OTEL_EXPORTER_OTLP_HEADERS=x-key=a%20b", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip")
	meta := []byte(`{"traceparent":"` + metaParent + `","tracestate":"a=1","baggage":"user=7"}`)
	parent, ok := tr.Decide(meta, http.Header{"Traceparent": {headerParent}})
	if !ok {
		t.Fatal("not sampled")
	}
	call := tr.Begin(parent, Start{Mount: "/mcp", Session: "ABCDEFGH", Method: mcp.MethodToolsCall, Name: "book", ID: "1", Version: mcp.V20250618})
	round := call.Round(1)
	params, header := round.Hand([]byte(`{"name":"book","_meta":{"traceparent":"`+metaParent+`","x":1}}`), http.Header{"X": {"y"}})
	round.End(&observe.Request{Method: mcp.MethodToolsCall, Version: mcp.V20260728, Took: 12 * time.Millisecond, Result: observe.InputRequired})
	call.Asked(`"b-1"`, mcp.MethodElicitationCreate)
	if call.Answered(`"b-2"`, 0) || !call.Answered(`"b-1"`, 0) || call.Answered(`"b-1"`, 0) {
		t.Error("an answer finds another question than its own")
	}
	call.End(-32602, "")
	call.End(0, "")
	tr.Close()

	server, question := c.spans["tools/call book"], c.spans[mcp.MethodElicitationCreate]
	if server == nil || question == nil || tr.Counts().Sent != 3 {
		t.Fatalf("%v %+v", c.spans, tr.Counts())
	}
	handed, _ := rawjson.Text(rawjson.Get(rawjson.Get(params, "_meta"), "traceparent"))
	if handed != header.Get("Traceparent") || !strings.HasPrefix(handed, "00-0af7651916cd43dd8448eb211c80319c-") || handed == metaParent {
		t.Errorf("handed on %s and %v", handed, header)
	}
	if header.Get("Tracestate") != "a=1" || header.Get("Baggage") != "user=7" || header.Get("X") != "y" || string(rawjson.Get(rawjson.Get(params, "_meta"), "x")) != "1" {
		t.Errorf("%v %s", header, params)
	}
	if c.header.Get("X-Key") != "a b" {
		t.Error(c.header)
	}
	if hex.EncodeToString(question.TraceId) != "0af7651916cd43dd8448eb211c80319c" || question.Kind != tracepb.Span_SPAN_KIND_CLIENT {
		t.Errorf("%v", question)
	}
}

// TestSpansOfBothSides: parents, kinds, links and attributes.
func TestSpansOfBothSides(t *testing.T) {
	c := newCollector(t)
	tr := tracer(t, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="+c.url+"/v1/traces")
	parent, _ := tr.Decide([]byte(`{"traceparent":"`+metaParent+`"}`), http.Header{"Traceparent": {headerParent}})
	call := tr.Begin(parent, Start{Mount: "/mcp", Method: "resources/read", ID: "1", Version: mcp.V20250618, Server: observe.Server{Address: "mcp.example.com", Port: "443"}})
	round := call.Round(2)
	_, header := round.Hand([]byte(`{}`), nil)
	round.End(&observe.Request{Method: mcp.MethodComplete, Result: observe.Error, Cause: "lost"})
	call.Asked(`"b"`, mcp.MethodRootsList)
	call.End(0, "tool_error")
	tr.Close()
	server, client := c.spans["resources/read"], c.spans[mcp.MethodComplete]
	if hex.EncodeToString(server.ParentSpanId) != "b7ad6b7169203331" || server.Kind != tracepb.Span_SPAN_KIND_SERVER || len(server.Links) != 1 ||
		hex.EncodeToString(server.Links[0].SpanId) != "2222222222222222" || server.Status.Code != tracepb.Status_STATUS_CODE_ERROR {
		t.Errorf("%v", server)
	}
	if string(client.ParentSpanId) != string(server.SpanId) || client.Kind != tracepb.Span_SPAN_KIND_CLIENT || !strings.Contains(header.Get("Traceparent"), hex.EncodeToString(client.SpanId)) {
		t.Errorf("%v", client)
	}
	if !slices.ContainsFunc(client.Attributes, func(kv *commonpb.KeyValue) bool { return kv.Key == "server.port" && kv.Value.GetIntValue() == 443 }) {
		t.Errorf("a port is a number by the conventions: %v", client.Attributes)
	}
	if got := attributes(client); got["mcpbridge.round"] != "2" || got["mcpbridge.result"] != "error" || got["error.type"] != "lost" {
		t.Errorf("%v", got)
	}
	if got := attributes(c.spans[mcp.MethodRootsList]); got["error.type"] != "cancelled" {
		t.Errorf("a question that nobody answered: %v", got)
	}
	conventions := []string{"mcp.method.name", "mcp.protocol.version", "mcp.session.id", "jsonrpc.request.id", "rpc.response.status_code", "error.type",
		"gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.prompt.name", "server.address", "server.port", "network.transport", "network.protocol.name", "network.protocol.version"}
	for name, s := range c.spans {
		for key := range attributes(s) {
			if !slices.Contains(conventions, key) && !strings.HasPrefix(key, "mcpbridge.") {
				t.Errorf("%s: %s is nobody's name", name, key)
			}
		}
	}
}

func attributes(s *tracepb.Span) map[string]string {
	all := map[string]string{}
	for _, kv := range s.Attributes {
		all[kv.Key] = strings.Trim(strings.SplitN(kv.Value.String(), ":", 2)[1], `"`)
	}
	return all
}

func TestWhoIsSampled(t *testing.T) {
	unsampled := strings.TrimSuffix(metaParent, "1") + "0"
	for _, tc := range []struct {
		sampler, arg, parent string
		want                 bool
	}{
		{"", "", "", true}, {"", "", metaParent, true}, {"", "", unsampled, false},
		{"always_on", "", unsampled, true}, {"always_off", "", metaParent, false},
		{"parentbased_always_off", "", metaParent, true}, {"parentbased_always_off", "", "", false},
		{"traceidratio", "0", metaParent, false}, {"traceidratio", "1", unsampled, true},
		{"parentbased_traceidratio", "0", "", false}, {"parentbased_traceidratio", "1", "", true},
		{"parentbased_always_off", "", "00-00000000000000000000000000000000-b7ad6b7169203331-01", false},
		{"parentbased_always_off", "", strings.ToUpper(metaParent), false},
		{"parentbased_always_off", "", metaParent + "-x", false},
		{"parentbased_always_off", "", "01" + metaParent[2:] + "-x", true},
		{"parentbased_always_off", "", "ff" + metaParent[2:], false},
	} {
		s, err := samplerOf(tc.sampler, tc.arg)
		if err != nil {
			t.Fatal(err)
		}
		tr := &Tracer{sample: s}
		_, inMeta := tr.Decide([]byte(`{"traceparent":"`+tc.parent+`"}`), nil)
		_, inHeader := tr.Decide(nil, http.Header{"Traceparent": {tc.parent}})
		if inMeta != tc.want || inHeader != tc.want {
			t.Errorf("%+v: %t %t", tc, inMeta, inHeader)
		}
	}
}

// TestDecidingAllocatesNothing: it is done for every call.
func TestDecidingAllocatesNothing(t *testing.T) {
	s, _ := samplerOf("parentbased_always_off", "")
	tr := &Tracer{sample: s}
	meta, header := []byte(`{"traceparent":"`+strings.TrimSuffix(metaParent, "1")+`0"}`), http.Header{"Traceparent": {headerParent}}
	if n := testing.AllocsPerRun(100, func() {
		tr.Decide(meta, header)
		tr.Decide(nil, nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestACollectorThatIsDownCostsACounter: nobody waits, and what has no room is dropped.
func TestACollectorThatIsDownCostsACounter(t *testing.T) {
	held, release := make(chan struct{}, 1), make(chan struct{})
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case held <- struct{}{}:
		default:
		}
		<-release
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(down.Close)
	tr := tracer(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+down.URL)
	parent, _ := tr.Decide(nil, nil)
	const many = 2*maxQueue + 1000
	for range many {
		tr.Begin(parent, Start{Method: "tools/list"}).End(0, "")
	}
	<-held
	close(release)
	tr.Close()
	if n := tr.Counts(); n.Sent != 0 || n.Dropped == 0 || n.Failed == 0 || n.Dropped+n.Failed != many {
		t.Errorf("%+v of %d", n, many)
	}
}

// TestSpansGoToTheirCollectorAlone, not where it points to: a header may have the key of an account.
func TestSpansGoToTheirCollectorAlone(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	collector := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(collector.Close)
	tr := tracer(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_EXPORTER_OTLP_HEADERS=api-key=secret")
	parent, _ := tr.Decide(nil, nil)
	tr.Begin(parent, Start{Method: "tools/list"}).End(0, "")
	tr.Close()
	if n := tr.Counts(); elsewhere.Load() != 0 || n.Failed != 1 {
		t.Errorf("%d requests elsewhere, %+v", elsewhere.Load(), n)
	}
}

// Errors are logged: a query may hold a key, and of a password that was not escaped a part looks like the host.
func TestNoErrorNamesTheCollectorsURL(t *testing.T) {
	for _, url := range []string{"http://me:12/sesame@127.0.0.1:1", "http://sesame#12@127.0.0.1:1", "http://me:pass@sesame?12@127.0.0.1:1", "http://me:sesame/1@127.0.0.1:1"} {
		if _, err := FromEnviron(environ("OTEL_EXPORTER_OTLP_ENDPOINT="+url), "v1"); err == nil || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %v", url, err)
		}
	}
	out, err := exporterOf(environ(), "http://sesame:sesame@127.0.0.1:1/sesame?key=sesame")
	if err != nil {
		t.Fatal(err)
	}
	if err := out.ExportSpans(t.Context(), nil); err == nil || strings.Contains(err.Error(), "sesame") {
		t.Errorf("nobody is there: %v", err)
	}
	astray := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/%zz?sesame")
		w.WriteHeader(http.StatusTemporaryRedirect)
	}))
	defer astray.Close()
	if out, err = exporterOf(environ(), astray.URL); err != nil {
		t.Fatal(err)
	}
	if err := out.ExportSpans(t.Context(), nil); err == nil || strings.Contains(err.Error(), "sesame") {
		t.Errorf("it redirects: %v", err)
	}
}

func TestVariablesThatAreWrongAreNamed(t *testing.T) {
	const on = "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318"
	for _, wrong := range []string{"OTEL_TRACES_EXPORTER=zipkin", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_TRACES_SAMPLER=odd", "OTEL_EXPORTER_OTLP_TIMEOUT=soon",
		"OTEL_EXPORTER_OTLP_COMPRESSION=zip", "OTEL_EXPORTER_OTLP_HEADERS=secret", "OTEL_EXPORTER_OTLP_CERTIFICATE=/no/such/file"} {
		name, value, _ := strings.Cut(wrong, "=")
		_, err := FromEnviron(environ(on, wrong), "v1")
		if err == nil || !strings.Contains(err.Error(), name) || value == "secret" && strings.Contains(err.Error(), value) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	if _, err := FromEnviron(environ("OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4318"), "v1"); err == nil {
		t.Error("an endpoint without scheme is taken")
	}
	for _, off := range [][]string{nil, {on, "OTEL_SDK_DISABLED=true"}, {on, "OTEL_TRACES_EXPORTER=none"}} {
		if tr, err := FromEnviron(environ(off...), "v1"); tr != nil || err != nil {
			t.Errorf("%q: %v %v", off, tr, err)
		}
	}
}
