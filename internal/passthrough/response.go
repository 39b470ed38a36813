package passthrough

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sse"
	"github.com/mcpbridge/bridge/upstream"
)

// response is what a modern client gets for one request: JSON when the response
// is all there is to say, else a stream of events.
type response struct {
	p      *Process
	w      http.ResponseWriter
	rc     *http.ResponseController
	cancel context.CancelFunc // gives the request up
	id     jsonrpc.ID
	listen bool
	stream bool // the client takes streams
	plain  bool // the client takes JSON
	mayLog func() bool
	failed failed // what is told if it fails

	mu    sync.Mutex
	began bool // the stream has
	over  bool
	buf   []byte // events to be written
	timer *time.Timer
}

func newResponse(w http.ResponseWriter, r *http.Request, msg *jsonrpc.Message, p *Process, cancel context.CancelFunc) *response {
	accept := strings.Join(r.Header["Accept"], ",")
	anything := accept == "" || strings.Contains(accept, "*/*")
	out := &response{
		p: p, w: w, rc: http.NewResponseController(w), cancel: cancel, id: msg.ID, listen: msg.Method == mcp.MethodListen,
		stream: anything || strings.Contains(accept, "text/event-stream"),
		plain:  anything || strings.Contains(accept, "application/json"),
		failed: failedOf(r, time.Now()),
	}
	if out.stream {
		out.mu.Lock()
		defer out.mu.Unlock()
		out.timer = time.AfterFunc(p.opt.CommitDelay, out.breathe)
	}
	return out
}

// breathe makes a response that takes long a stream, and keeps a quiet one alive.
func (o *response) breathe() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return
	}
	o.buf = append(o.buf, ":\n\n"...)
	o.write()
	o.timer.Reset(o.p.opt.KeepAlive)
}

// notify takes a notification that belongs to the request.
func (o *response) notify(msg jsonrpc.Message) {
	if !o.stream {
		return
	}
	params := msg.Params
	switch {
	case msg.Method == mcp.NotificationMessage && (o.mayLog == nil || !o.mayLog()): // C-8
		o.p.opt.Log.Debug().Msg("a log message without a certain owner was withheld")
		return
	case o.listen:
		params = subscription(params, o.id)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf = sse.AppendEvent(o.buf, "", jsonrpc.AppendNotification(nil, msg.Method, params))
	if len(o.buf) >= collected && !o.over {
		o.write()
	}
}

// collected is how much of events is written without waiting for more, in bytes: what is
// collected is charged to nobody.
const collected = 64 << 10

// flush writes what notify has collected.
func (o *response) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.buf) > 0 {
		o.write()
	}
}

// write sends the collected events, with the lock held. A client that cannot be
// written to is gone.
func (o *response) write() {
	o.p.bound(o.w, o.p.opt.WriteTimeout)
	if !o.began {
		o.began = true
		h := o.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no")
		o.w.WriteHeader(http.StatusOK)
	}
	_, err := o.w.Write(o.buf)
	if o.buf = o.buf[:0]; cap(o.buf) > 2*collected {
		o.buf = nil
	}
	if err == nil {
		err = o.rc.Flush()
	}
	if err != nil {
		o.over = true
		o.cancel()
	}
}

// finish delivers the response.
func (o *response) finish(ans *upstream.Answer) {
	if ans.Error != nil {
		o.deliver(statusOf(ans.Error.Code), jsonrpc.AppendError(nil, o.id, ans.Error))
		return
	}
	result := ans.Result
	if o.listen {
		result = subscription(result, o.id)
	}
	o.deliver(http.StatusOK, jsonrpc.AppendResult(nil, o.id, result))
}

// fail delivers that there is no response of the server.
func (o *response) fail(err error) {
	status, retry, refusal := failure(err)
	o.failed.tell(&o.p.seldom, err)
	o.mu.Lock()
	if retry > 0 && !o.began {
		o.w.Header().Set("Retry-After", strconv.Itoa(int(retry.Seconds())+1))
	}
	o.mu.Unlock()
	o.deliver(status, jsonrpc.AppendError(nil, o.id, refusal))
}

// deliver writes the message that ends the response. Once the stream began, or
// where the client takes nothing else, it is the last event.
func (o *response) deliver(status int, msg []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return
	}
	o.over = true
	if o.began || len(o.buf) > 0 || !o.plain && o.stream && status == http.StatusOK {
		o.buf = sse.AppendEvent(o.buf, "", msg)
		o.write()
		return
	}
	o.writeWhole(status, msg)
}

// writePart is what a client must take of a response within WriteTimeout.
const writePart = 256 << 10

// writeWhole writes a response that is no stream. It may be so large that the
// client has to read meanwhile: one that stops must not hold the request up.
func (o *response) writeWhole(status int, msg []byte) {
	h := o.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(msg)))
	o.w.WriteHeader(status)
	for part := range slices.Chunk(msg, writePart) {
		o.p.bound(o.w, o.p.opt.WriteTimeout)
		if _, err := o.w.Write(part); err != nil {
			return // a client that left is told nothing
		}
	}
}

// end lets go of the response: nothing is written after it.
func (o *response) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
	if o.timer != nil {
		o.timer.Stop()
	}
}

// leave ends the response of a client that is gone. One that got nothing gets no response: it may have closed only its
// sending half, and would take an empty one for its answer.
func (o *response) leave() {
	o.end()
	if !o.began {
		panic(http.ErrAbortHandler)
	}
}

// fail answers a message other than a request that could not be handed on.
func (p *Process) fail(ctx context.Context, w http.ResponseWriter, id jsonrpc.ID, err error) {
	if ctx.Err() != nil && !isStopped(ctx) {
		panic(http.ErrAbortHandler) // the client is gone: no response
	}
	status, _, refusal := failure(err)
	writeError(w, status, id, refusal)
}

// statusOf is the HTTP status that goes with an error of the server.
func statusOf(code int) int {
	switch code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case jsonrpc.CodeInvalidParams, jsonrpc.CodeInvalidRequest, jsonrpc.CodeParse,
		mcp.CodeHeaderMismatch, mcp.CodeMissingCapability, mcp.CodeUnsupportedVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// failure says how a request without a response is answered (F.4).
func failure(err error) (status int, retry time.Duration, refusal *jsonrpc.Error) {
	reason := "internal"
	if f, ok := errors.AsType[*upstream.Failure](err); ok {
		reason, retry = f.Cause.String(), f.RetryAfter
	}
	if errors.Is(err, stopped{}) {
		reason = "shutdown"
	}
	refusal = fault.Internal(err.Error(), fault.Reason(reason))
	if retry > 0 {
		return http.StatusServiceUnavailable, retry, refusal
	}
	return http.StatusBadGateway, 0, refusal
}

func writeError(w http.ResponseWriter, status int, id jsonrpc.ID, e *jsonrpc.Error) {
	writeJSON(w, status, jsonrpc.AppendError(nil, id, e))
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that left is told nothing
}
