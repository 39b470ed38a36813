package mount

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

// signal has somebody look at something, once for however many who want that.
type signal chan struct{}

func (s signal) give() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// suspecting is a Caller whose outcomes are judged for what they say of the server itself:
// that it is away, or that it is not what it was.
type suspecting struct {
	upstream.Caller
	away, other signal
}

var _ upstream.Wrapper = (*suspecting)(nil)

// Unwrap implements upstream.Wrapper.
func (s *suspecting) Unwrap() upstream.Caller { return s.Caller }

// Do implements upstream.Caller. What asks what the server is (server/discover) is judged by
// whoever asks.
func (s *suspecting) Do(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
	answer, err := s.Caller.Do(ctx, call, notify)
	switch {
	case call.Method == mcp.MethodDiscover:
	case err != nil:
		s.failed(err)
	case answer.Error != nil && strange(answer.Error.Code):
		s.other.give()
	}
	return answer, err
}

// Listen implements upstream.Caller. A subscription that is refused as a server of another era would is often the first sign of it;
// that it is not known, or ends, is none.
func (s *suspecting) Listen(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) error {
	err := s.Caller.Listen(ctx, call, notify)
	failure, _ := errors.AsType[*upstream.Failure](err)
	refusal, _ := errors.AsType[*jsonrpc.Error](err)
	if failure != nil && failure.Cause == upstream.NotModern || refusal != nil && refusal.Code != jsonrpc.CodeMethodNotFound && strange(refusal.Code) {
		s.other.give()
	}
	return err
}

func (s *suspecting) failed(err error) {
	failure, _ := errors.AsType[*upstream.Failure](err)
	switch {
	case failure == nil:
	case failure.Cause == upstream.NotModern:
		s.other.give()
	case absent(failure):
		s.away.give()
	}
}

// suspectingTransport is suspecting for what goes past the bridge, of which it only shows
// whether somebody was there, and who knows nothing of sessions.
type suspectingTransport struct {
	base        http.RoundTripper
	away, other signal
}

// RoundTrip implements http.RoundTripper.
func (s *suspectingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.base.RoundTrip(r)
	if err != nil && r.Context().Err() == nil || err == nil && resp.StatusCode >= http.StatusInternalServerError {
		s.away.give()
	}
	if err == nil && resp.StatusCode == http.StatusBadRequest && r.Header.Get(mcp.HeaderSessionID) != "" {
		s.other.give() // as a modern server answers what declares no version
	}
	return resp, err
}

// strange reports an error that a server of the bridge's revision has no reason to answer the
// bridge with, and a legacy one has: it knows neither the session nor the revision.
func strange(code int) bool {
	switch code {
	case jsonrpc.CodeInvalidParams, jsonrpc.CodeInternal, mcp.CodeResourceNotFound, mcp.CodeHeaderMismatch, mcp.CodeMissingCapability:
		return false
	}
	return code >= jsonrpc.CodeParse && code <= lastReserved
}

// lastReserved is the last code that JSON-RPC reserves; beyond it they are the tools' own.
const lastReserved = -32000

// lookPause is how long nobody is asked again after suspicions that proved wrong, as of a
// server that answers such errors for reasons of its own.
const lookPause = 5 * time.Second

// watch has a server looked at that answers as one of another era would, so that those who
// rely on what it was learn it with the first such answer. It returns when ctx ends.
func (s *suspecting) watch(ctx context.Context, look func(context.Context) error) {
	for {
		select {
		case <-s.other:
			_ = look(ctx) // who is away shows nothing
		case <-ctx.Done():
			return
		}
		pause := time.NewTimer(lookPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return
		}
	}
}
