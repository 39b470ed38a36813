package traces

import (
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
)

const (
	failed = codes.Error
)

// Start is what is known of a call when it begins.
type Start struct {
	Mount   string
	Server  observe.Server
	Session string // shortened; "": none
	Method  string
	Name    string // of the tool or prompt; "": none
	ID      string
	Version mcp.Version
	// Transport is how the client speaks with the bridge.
	Transport observe.Transport
	HTTP      observe.HTTP
}

// CallTrace is a client's call that is traced. Its methods are safe for concurrent use.
type CallTrace struct {
	tracer *Tracer
	start  Start
	parent Parent
	ids    ids
	began  time.Time

	mu        sync.Mutex
	questions map[string]asked // open, by their id
	ended     bool
}

// asked is a question that waits for its answer.
type asked struct {
	method string
	began  time.Time
}

// Begin begins a call that is to be traced.
func (t *Tracer) Begin(p Parent, s Start) *CallTrace {
	c := &CallTrace{tracer: t, start: s, parent: p, began: time.Now(), ids: ids{p.trace, newSpanID()}}
	if !p.trace.IsValid() {
		c.ids.trace = newTraceID()
	}
	return c
}

// title names a span by the conventions: the method, and the tool or prompt. What is no
// method of the protocol is not repeated.
func title(method, name string) string {
	if name != "" {
		method += " " + name
	}
	return rawjson.Readable(method) // a span with a text that is no UTF-8 takes its whole batch with it
}

// common are the attributes of both sides of a call.
func common(method, name string, version mcp.Version) []attribute.KeyValue {
	list := []attribute.KeyValue{attribute.String("mcp.method.name", rawjson.Readable(method)), attribute.String("mcp.protocol.version", string(version))}
	switch method {
	case mcp.MethodToolsCall:
		list = append(list, attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", name))
	case mcp.MethodPromptsGet:
		list = append(list, attribute.String("gen_ai.prompt.name", name))
	}
	return list
}

// End makes the span of the call. code is that of the error that the client got, 0 for
// none; fault says what went wrong otherwise, as error.type has it.
func (c *CallTrace) End(code int, fault string) {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return
	}
	c.ended = true
	left := c.questions
	c.questions = nil
	c.mu.Unlock()
	for _, q := range left {
		c.question(q, "cancelled", 0)
	}
	s := &span{ids: c.ids, kind: trace.SpanKindServer, name: title(c.start.Method, c.start.Name), began: c.began, ended: time.Now(), fault: fault}
	s.attributes = append(common(c.start.Method, c.start.Name, c.start.Version),
		attribute.String("mcpbridge.mount", c.start.Mount), attribute.String("jsonrpc.request.id", c.start.ID))
	s.attributes = append(s.attributes, networkOf(&c.start)...)
	if c.start.Session != "" {
		s.attributes = append(s.attributes, attribute.String("mcp.session.id", c.start.Session))
	}
	if code != 0 {
		s.attributes = append(s.attributes, attribute.String("rpc.response.status_code", strconv.Itoa(code)))
		if fault == "" && !clientsFault(code) {
			s.fault = strconv.Itoa(code)
		}
	}
	if c.parent.span.IsValid() {
		s.parent = c.context(c.parent.span, true)
	}
	if link := c.parent.link; link.span.IsValid() {
		s.link = trace.NewSpanContext(trace.SpanContextConfig{TraceID: link.trace, SpanID: link.span, Remote: true})
	}
	c.tracer.make(s)
}

// networkOf has the attributes of the conventions for how a client speaks.
func networkOf(s *Start) []attribute.KeyValue {
	own := attribute.String("mcpbridge.transport", s.Transport.String())
	switch s.Transport {
	case observe.Stdio:
		return []attribute.KeyValue{own, attribute.String("network.transport", "pipe")}
	case observe.WebSocket:
		return []attribute.KeyValue{own, attribute.String("network.transport", "tcp"), attribute.String("network.protocol.name", "websocket")}
	case observe.StreamableHTTP, observe.HTTPSSE:
		return append([]attribute.KeyValue{own, attribute.String("network.transport", "tcp")}, overHTTP(s.HTTP)...)
	}
	return nil
}

// overHTTP has the attributes of HTTP in a version, as far as that is known.
func overHTTP(version observe.HTTP) []attribute.KeyValue {
	list := []attribute.KeyValue{attribute.String("network.protocol.name", "http")}
	if version != observe.NoHTTP {
		list = append(list, attribute.String("network.protocol.version", version.String()))
	}
	return list
}

// clientsFault reports whether a code is no error of the side that answers.
func clientsFault(code int) bool {
	switch code {
	case -32700, -32600, -32601, -32602, -32002:
		return true
	}
	return false
}

func (c *CallTrace) context(id trace.SpanID, remote bool) trace.SpanContext {
	state, _ := trace.ParseTraceState(c.parent.state) // one that cannot be read is left out, as W3C says
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: c.ids.trace, SpanID: id, TraceFlags: trace.FlagsSampled, TraceState: state, Remote: remote})
}

// Round is a request to the server on behalf of a call.
type Round struct {
	call   *CallTrace
	id     trace.SpanID
	number int
	began  time.Time
	name   string
}

// Round begins a request to the server.
func (c *CallTrace) Round(number int) Round {
	return Round{c, newSpanID(), number, time.Now(), c.start.Name}
}

// Hand writes the context of a round into the params and the headers of its request.
func (r *Round) Hand(params []byte, header http.Header) ([]byte, http.Header) {
	parent := fmt.Sprintf("00-%s-%s-01", hex.EncodeToString(r.call.ids.trace[:]), hex.EncodeToString(r.id[:]))
	edits := []rawjson.Edit{{Name: inMeta, Value: rawjson.AppendQuote(nil, parent)}}
	header = maps.Clone(header)
	if header == nil {
		header = http.Header{}
	}
	header[inHeader] = []string{parent}
	for _, also := range []struct{ text, meta, head string }{{r.call.parent.state, stateMeta, stateHead}, {r.call.parent.baggage, baggageMeta, baggageHead}} {
		if also.text != "" {
			edits = append(edits, rawjson.Edit{Name: also.meta, Value: rawjson.AppendQuote(nil, also.text)})
			header[also.head] = []string{also.text}
		}
	}
	meta := rawjson.Apply(nil, rawjson.Get(params, "_meta"), edits...)
	return rawjson.Apply(nil, params, rawjson.Edit{Name: "_meta", Value: meta}), header
}

// End makes the span of a round.
func (r *Round) End(done *observe.Request) {
	s := &span{ids: ids{r.call.ids.trace, r.id}, parent: r.call.context(r.call.ids.span, false), kind: trace.SpanKindClient,
		name: title(done.Method, r.name), began: r.began, ended: r.began.Add(done.Took), fault: done.Cause}
	s.attributes = append(common(done.Method, r.name, done.Version), attribute.String("mcpbridge.mount", r.call.start.Mount),
		attribute.Int("mcpbridge.round", r.number), attribute.String("mcpbridge.result", done.Result.String()))
	at := &r.call.start.Server
	for _, known := range []struct{ name, value string }{{"server.address", at.Address}, {"network.transport", at.Transport}} {
		if known.value != "" {
			s.attributes = append(s.attributes, attribute.String(known.name, known.value))
		}
	}
	if port, err := strconv.Atoi(at.Port); err == nil {
		s.attributes = append(s.attributes, attribute.Int("server.port", port))
	}
	if done.HTTP != observe.NoHTTP {
		s.attributes = append(s.attributes, overHTTP(done.HTTP)...)
	}
	if done.Code != 0 {
		s.fault = strconv.Itoa(done.Code)
		s.attributes = append(s.attributes, attribute.String("rpc.response.status_code", s.fault))
	}
	r.call.tracer.make(s)
}

// Leave makes the span of what was done here of a call that another process goes on with,
// and so it does with the questions that are open.
func (c *CallTrace) Leave() {
	c.mu.Lock()
	c.questions = nil
	c.mu.Unlock()
	c.End(0, "")
}

// Asked notes that a question has left, under its id.
func (c *CallTrace) Asked(id, method string) { c.asked(id, asked{method, time.Now()}) }

func (c *CallTrace) asked(id string, q asked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	if c.questions == nil {
		c.questions = map[string]asked{}
	}
	c.questions[id] = q
}

// Answered makes the span of a question, and reports whether it was one of this call's.
// code is that of the error which the client answered; 0: none.
func (c *CallTrace) Answered(id string, code int) bool {
	c.mu.Lock()
	q, ok := c.questions[id]
	delete(c.questions, id)
	c.mu.Unlock()
	if ok {
		c.question(q, "", code)
	}
	return ok
}

func (c *CallTrace) question(q asked, fault string, code int) {
	s := &span{ids: ids{c.ids.trace, newSpanID()}, parent: c.context(c.ids.span, false), kind: trace.SpanKindClient,
		name: q.method, began: q.began, ended: time.Now(), fault: fault}
	s.attributes = append(common(q.method, "", c.start.Version), attribute.String("mcpbridge.mount", c.start.Mount))
	s.attributes = append(s.attributes, networkOf(&c.start)...)
	if code != 0 {
		s.fault = strconv.Itoa(code)
		s.attributes = append(s.attributes, attribute.String("rpc.response.status_code", s.fault))
	}
	c.tracer.make(s)
}
