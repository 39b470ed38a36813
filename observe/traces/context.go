package traces

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/mcpbridge/bridge/rawjson"
)

// Parent is the context in which a client made a call.
type Parent struct {
	span    trace.SpanID // zero: the call begins a trace
	trace   trace.TraceID
	link    carried // the other context, where _meta and the header disagree
	state   string
	baggage string
}

// carried is a context as W3C Trace Context spells it.
type carried struct {
	trace   trace.TraceID
	span    trace.SpanID
	sampled bool
}

// The names under which contexts travel, in _meta and as headers.
const (
	inMeta       = "traceparent"
	inHeader     = "Traceparent"
	stateMeta    = "tracestate"
	stateHead    = "Tracestate"
	baggageMeta  = "baggage"
	baggageHead  = "Baggage"
	maxState     = 512  // bytes; W3C asks for no more
	maxBaggage   = 8192 // the same
	parentLength = 55   // of traceparent, version 00
)

// readContext parses a traceparent: version, trace, parent and flags in hex. Of versions
// to come only what version 00 has is read.
func readContext(text []byte) (c carried, ok bool) {
	if len(text) < parentLength || text[2] != '-' || text[35] != '-' || text[52] != '-' || string(text[:2]) == "ff" ||
		len(text) > parentLength && (string(text[:2]) == "00" || text[parentLength] != '-') {
		return c, false
	}
	var version, flags [1]byte
	for _, part := range []struct {
		into []byte
		from []byte
	}{{version[:], text[:2]}, {c.trace[:], text[3:35]}, {c.span[:], text[36:52]}, {flags[:], text[53:55]}} {
		if _, err := hex.Decode(part.into, part.from); err != nil || hasUpper(part.from) {
			return carried{}, false
		}
	}
	c.sampled = flags[0]&1 != 0
	return c, c.trace.IsValid() && c.span.IsValid()
}

func hasUpper(text []byte) bool {
	for _, b := range text {
		if b >= 'A' && b <= 'F' {
			return true
		}
	}
	return false
}

// Decide reports whether a call is to be traced, and in which context. The _meta of its
// params wins over the headers that came with it.
func (t *Tracer) Decide(meta []byte, header http.Header) (p Parent, sampled bool) {
	var here, there carried
	var inside, outside bool
	if text, ok := rawjson.TextBytes(rawjson.Get(meta, inMeta)); ok {
		here, inside = readContext(text)
	}
	if values := header[inHeader]; len(values) == 1 && len(values[0]) < 2*parentLength {
		var text [2 * parentLength]byte
		there, outside = readContext(text[:copy(text[:], values[0])])
	}
	if !inside {
		here = there
	}
	if !t.sample.wants(here, inside || outside) {
		return p, false
	}
	p.trace, p.span = here.trace, here.span
	if inside && outside && here != there {
		p.link = there
	}
	if inside {
		p.state, p.baggage = metaText(meta, stateMeta, maxState), metaText(meta, baggageMeta, maxBaggage)
	} else if outside {
		p.state = headerText(header, stateHead, maxState)
	}
	if p.baggage == "" {
		p.baggage = headerText(header, baggageHead, maxBaggage)
	}
	return p, true
}

func metaText(meta []byte, name string, most int) string {
	text, _ := rawjson.Text(rawjson.Get(meta, name))
	if len(text) > most {
		return ""
	}
	return text
}

func headerText(header http.Header, name string, most int) string {
	text := strings.Join(header[name], ",")
	if len(text) > most {
		return ""
	}
	return text
}

// sampler decides which calls are traced, as OTEL_TRACES_SAMPLER says.
type sampler struct {
	parents bool   // what the client decided holds
	below   uint64 // of those without a parent: traces whose number is lower; of 1<<63
}

const everything = 1 << 63

func (s *sampler) wants(parent carried, has bool) bool {
	switch {
	case has && s.parents:
		return parent.sampled
	case s.below == 0:
		return false
	case s.below >= everything:
		return true
	case has:
		return number(parent.trace) < s.below
	}
	return rand.Uint64()>>1 < s.below
}

// number is what of a trace id the samplers of OpenTelemetry compare.
func number(id trace.TraceID) uint64 {
	n := uint64(0)
	for _, b := range id[8:] {
		n = n<<8 | uint64(b)
	}
	return n >> 1
}

// Keep returns the context of a call as JSON, for a process that goes on with it.
func (c *CallTrace) Keep() []byte {
	b := append([]byte(nil), `{"parent":`...)
	b = rawjson.AppendQuote(b, fmt.Sprintf("00-%s-%s-01", hex.EncodeToString(c.ids.trace[:]), hex.EncodeToString(c.ids.span[:])))
	for _, more := range []struct{ name, text string }{{"name", c.start.Name}, {"state", c.parent.state}, {"baggage", c.parent.baggage}} {
		if more.text != "" {
			b = rawjson.AppendQuote(append(rawjson.AppendQuote(append(b, ','), more.name), ':'), more.text)
		}
	}
	return append(c.appendAsked(b), '}')
}

// appendAsked appends since when questions are open. One that is about to leave is kept
// before it does, so for all others it is now.
func (c *CallTrace) appendAsked(b []byte) []byte {
	b = append(b, `,"at":`...)
	b = strconv.AppendInt(b, time.Now().UnixMicro(), 10)
	b = append(b, `,"asked":{`...)
	c.mu.Lock()
	defer c.mu.Unlock()
	comma := ""
	for id, q := range c.questions {
		b = rawjson.AppendQuote(append(b, comma...), id)
		b = strconv.AppendInt(append(b, ':'), q.began.UnixMicro(), 10)
		comma = ","
	}
	return append(b, '}')
}

// AskedBefore notes that a question is open which another process asked, by what that kept
// with [Call.Keep].
func (c *CallTrace) AskedBefore(kept []byte, id, method string) {
	at, ok := rawjson.Int(rawjson.Get(rawjson.Get(kept, "asked"), id))
	if !ok {
		if at, ok = rawjson.Int(rawjson.Get(kept, "at")); !ok {
			return // of an older release: nobody knows when it was
		}
	}
	c.asked(id, asked{method, time.UnixMicro(at)})
}

// Resume begins the rest of a call that another process kept with [Call.Keep]: in the
// same trace, below the span of what was done there. Without such a context it returns nil.
func (t *Tracer) Resume(kept []byte, s Start) *CallTrace {
	text, ok := rawjson.TextBytes(rawjson.Get(kept, "parent"))
	if !ok {
		return nil
	}
	before, ok := readContext(text)
	if !ok {
		return nil
	}
	p := Parent{trace: before.trace, span: before.span}
	p.state, _ = rawjson.Text(rawjson.Get(kept, "state"))
	p.baggage, _ = rawjson.Text(rawjson.Get(kept, "baggage"))
	s.Name, _ = rawjson.Text(rawjson.Get(kept, "name"))
	return t.Begin(p, s)
}
