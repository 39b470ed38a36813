package traces

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Tracer makes spans, and has them sent.
type Tracer struct {
	sample   sampler
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	queue    *queue
}

// scope names the instrumentation.
const scope = "github.com/mcpbridge/bridge"

// newTracer returns one whose spans go to an exporter.
func newTracer(sample sampler, out sdk.SpanExporter, about *resource.Resource) *Tracer {
	q := newQueue(out)
	provider := sdk.NewTracerProvider(
		sdk.WithSampler(sdk.AlwaysSample()), // it is decided before
		sdk.WithIDGenerator(generator{}), sdk.WithResource(about), sdk.WithSpanProcessor(q))
	return &Tracer{sample: sample, provider: provider, tracer: provider.Tracer(scope), queue: q}
}

// Counts says what became of spans since the start.
type Counts struct{ Sent, Failed, Dropped uint64 }

// Counts returns them. Of the nil tracer there are none.
func (t *Tracer) Counts() Counts {
	if t == nil {
		return Counts{}
	}
	return t.queue.counts()
}

// farewell bounds how long the last spans may take.
const farewell = 3 * time.Second

// Close sends what is left.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // what could not be sent was counted
}

// idsKey is under which a context has the ids of the span that is made in it.
type idsKey struct{}

type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

// generator gives spans the ids that were handed to the server long before.
type generator struct{}

func (generator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if id, ok := ctx.Value(idsKey{}).(ids); ok {
		return id.trace, id.span
	}
	return newTraceID(), newSpanID()
}

func (generator) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if id, ok := ctx.Value(idsKey{}).(ids); ok {
		return id.span
	}
	return newSpanID()
}

func newSpanID() (id trace.SpanID) {
	for !id.IsValid() {
		binary.BigEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}

func newTraceID() (id trace.TraceID) {
	binary.BigEndian.PutUint64(id[:8], rand.Uint64())
	for number(id) == 0 {
		binary.BigEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id
}

// span is what is said of one.
type span struct {
	ids
	parent       trace.SpanContext
	kind         trace.SpanKind
	name         string
	began, ended time.Time
	attributes   []attribute.KeyValue
	link         trace.SpanContext
	fault        string // "": none
}

// make makes a span that is over.
func (t *Tracer) make(s *span) {
	ctx := context.WithValue(context.Background(), idsKey{}, s.ids)
	if s.parent.IsValid() {
		ctx = trace.ContextWithSpanContext(ctx, s.parent)
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(s.kind), trace.WithTimestamp(s.began), trace.WithAttributes(s.attributes...)}
	if s.link.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: s.link}))
	}
	_, made := t.tracer.Start(ctx, s.name, options...)
	if s.fault != "" {
		made.SetAttributes(attribute.String("error.type", s.fault))
		made.SetStatus(failed, "")
	}
	made.End(trace.WithTimestamp(s.ended))
}

// queue holds spans until they are sent. What does not fit is dropped, and counted.
type queue struct {
	sdk.SpanProcessor
	mu      sync.Mutex
	waiting int
	Counts
}

// maxQueue bounds the spans that wait.
const maxQueue = 2048

func newQueue(out sdk.SpanExporter) *queue {
	q := &queue{}
	q.SpanProcessor = sdk.NewBatchSpanProcessor(&counting{out, q}, sdk.WithMaxQueueSize(maxQueue))
	return q
}

// OnEnd implements sdk.SpanProcessor.
func (q *queue) OnEnd(s sdk.ReadOnlySpan) {
	q.mu.Lock()
	full := q.waiting >= maxQueue
	if full {
		q.Dropped++
	} else {
		q.waiting++
	}
	q.mu.Unlock()
	if !full {
		q.SpanProcessor.OnEnd(s)
	}
}

func (q *queue) counts() Counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.Counts
}

// counting is an exporter whose failures are counted, and told nobody else.
type counting struct {
	sdk.SpanExporter
	queue *queue
}

// ExportSpans implements sdk.SpanExporter.
func (c *counting) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	c.queue.waiting -= len(spans)
	if err != nil {
		c.queue.Failed += uint64(len(spans))
	} else {
		c.queue.Sent += uint64(len(spans))
	}
	return nil
}
