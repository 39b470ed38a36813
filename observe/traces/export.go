package traces

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// exporter posts spans as OTLP in protobuf. TracesData is on the wire what the request
// of the collector's service is, whose generated code would bring gRPC along (ADR 12).
type exporter struct {
	client  *http.Client
	url     string
	header  http.Header
	timeout time.Duration
	gzip    bool
}

var _ sdk.SpanExporter = (*exporter)(nil)

// maxAnswer bounds what is read of a collector's answer, in bytes.
const maxAnswer = 64 << 10

// ExportSpans implements sdk.SpanExporter.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	body, err := proto.Marshal(encode(spans))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	if e.gzip {
		if body, err = zipped(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, values := range e.header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	if e.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := e.client.Do(req)
	if quoting := (*url.Error)(nil); errors.As(err, &quoting) { // the URL, whose query may hold a key
		err = quoting.Err
	}
	if err != nil && strings.HasPrefix(err.Error(), "failed to parse Location header") { // which net/http quotes
		return errors.New("the collector redirects to what is no URL")
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answers %s", resp.Status)
	}
	return nil
}

// Shutdown implements sdk.SpanExporter.
func (e *exporter) Shutdown(context.Context) error {
	e.client.CloseIdleConnections()
	return nil
}

func zipped(body []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	err := w.Close()
	return out.Bytes(), err
}

// encode makes the message. All spans are of one resource and one scope.
func encode(spans []sdk.ReadOnlySpan) *tracepb.TracesData {
	if len(spans) == 0 {
		return &tracepb.TracesData{}
	}
	scoped := &tracepb.ScopeSpans{Scope: &commonpb.InstrumentationScope{Name: spans[0].InstrumentationScope().Name}}
	for _, s := range spans {
		scoped.Spans = append(scoped.Spans, encodeSpan(s))
	}
	return &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource: &resourcepb.Resource{Attributes: encodeAttributes(spans[0].Resource().Attributes())}, ScopeSpans: []*tracepb.ScopeSpans{scoped},
	}}}
}

func encodeSpan(s sdk.ReadOnlySpan) *tracepb.Span {
	of := s.SpanContext()
	traceID, spanID := of.TraceID(), of.SpanID()
	out := &tracepb.Span{
		TraceId: traceID[:], SpanId: spanID[:], TraceState: of.TraceState().String(), Flags: flags(of, s.Parent()),
		Name: s.Name(), Kind: tracepb.Span_SpanKind(s.SpanKind() + 1 - trace.SpanKindInternal),
		StartTimeUnixNano: uint64(s.StartTime().UnixNano()), EndTimeUnixNano: uint64(s.EndTime().UnixNano()),
		Attributes: encodeAttributes(s.Attributes()), Status: &tracepb.Status{},
	}
	if s.Status().Code == failed {
		out.Status.Code = tracepb.Status_STATUS_CODE_ERROR
	}
	if parent := s.Parent().SpanID(); parent.IsValid() {
		out.ParentSpanId = parent[:]
	}
	for _, l := range s.Links() {
		linked, at := l.SpanContext.TraceID(), l.SpanContext.SpanID()
		out.Links = append(out.Links, &tracepb.Span_Link{TraceId: linked[:], SpanId: at[:]})
	}
	return out
}

// flags has those of W3C in its lowest byte, and whether the parent is remote.
func flags(of, parent trace.SpanContext) uint32 {
	f := uint32(of.TraceFlags()) | uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK)
	if parent.IsRemote() {
		f |= uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)
	}
	return f
}

func encodeAttributes(list []attribute.KeyValue) []*commonpb.KeyValue {
	var out []*commonpb.KeyValue
	for _, kv := range list {
		value := &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: kv.Value.String()}}
		switch kv.Value.Type() {
		case attribute.INT64:
			value.Value = &commonpb.AnyValue_IntValue{IntValue: kv.Value.AsInt64()}
		case attribute.BOOL:
			value.Value = &commonpb.AnyValue_BoolValue{BoolValue: kv.Value.AsBool()}
		}
		out = append(out, &commonpb.KeyValue{Key: string(kv.Key), Value: value})
	}
	return out
}
