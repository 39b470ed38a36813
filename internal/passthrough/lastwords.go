package passthrough

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sse"
)

// gaveUp is what a request is told that had to be given up.
const gaveUp = "the bridge is shutting down; whether the request was executed is not known"

// stopped is why the context of a request ended that the bridge gave up as it stops. To who asks
// only whether it was given up it is that.
type stopped struct{}

func (stopped) Error() string { return gaveUp }

// Is is for errors.Is.
func (stopped) Is(target error) bool { return target == context.Canceled }

// isStopped tells the end of the bridge from that of the client's interest.
func isStopped(ctx context.Context) bool { return context.Cause(ctx) == error(stopped{}) }

// isLapsed tells the end of the credentials of what only listens from both.
func isLapsed(ctx context.Context) bool { return errors.Is(context.Cause(ctx), downstream.ErrLapsed) }

// lastWord is what is said to requests that the bridge gave up, and the status that goes with it.
func lastWord(why error) (status int, e *jsonrpc.Error) {
	switch {
	case errors.Is(why, context.DeadlineExceeded):
		return http.StatusGatewayTimeout, fault.Internal(why.Error(), fault.Reason("timeout"))
	case errors.Is(why, downstream.ErrLapsed):
		return http.StatusBadGateway, fault.Internal(why.Error(), fault.Reason("credentials"))
	}
	return http.StatusBadGateway, fault.Internal(why.Error(), fault.Reason("shutdown"))
}

// passing finds, in the context of a request that is sent, what it is sent for.
type passing struct{}

// passage is a request of a client that is handed on, and its response.
type passage struct {
	in   *http.Request
	out  *patient
	pace *pace // nil: it has no bounds
	told bool  // the log, why it failed

	asked    *asked // and not answered; nil: not read yet
	withdraw func() // once: tells the server that nobody waits any more
}

// due returns what was asked for and has not been answered.
func (p *passage) due() *asked {
	if p.asked == nil {
		a := askedBy(p.in)
		p.asked = &a
	}
	return p.asked
}

// answered notes that responses have passed. What is said of these requests afterwards would be of others, for which
// the client uses the ids again.
func (p *passage) answered(ids []jsonrpc.ID) {
	if len(ids) == 0 {
		return
	}
	a := p.due()
	a.ids = slices.DeleteFunc(a.ids, func(id jsonrpc.ID) bool { return slices.Contains(ids, id) })
	a.done = len(a.ids) == 0
}

// end does what is to be done before a client hears that its request was given up.
func (p *passage) end(why error) {
	if errors.Is(why, context.DeadlineExceeded) {
		p.withdraw()
		return
	}
	p.out.hurry()
}

func passageOf(ctx context.Context) *passage {
	p, _ := ctx.Value(passing{}).(*passage)
	return p
}

// tell answers what was given up before anything of a response was there.
func (p *passage) tell(w http.ResponseWriter, why error) {
	asked := *p.due()
	asked.listen = false // which has yet to begin
	status, word := lastWord(why)
	switch {
	case len(asked.ids) == 0:
		http.Error(w, why.Error(), status)
	case asked.array:
		writeJSON(w, status, append(append([]byte{'['}, bytes.Join(asked.words(word), []byte{','})...), ']'))
	default:
		writeJSON(w, status, asked.words(word)[0])
	}
}

// asked is what a body asks for, as far as an answer must name it.
type asked struct {
	ids    []jsonrpc.ID
	array  bool
	listen bool
	done   bool // all of it is answered
}

// askedBy reads a request again that was handed on. Of one whose body is gone nothing is known.
func askedBy(r *http.Request) (a asked) {
	if r.GetBody == nil {
		return a
	}
	if body, err := r.GetBody(); err == nil {
		_, _ = io.Copy(&a, body) // in one piece, and without a copy
	}
	return a
}

// Write reads a body, which is in memory and comes whole.
func (a *asked) Write(body []byte) (int, error) {
	parts := [][]byte{body}
	if a.array = jsonrpc.IsBatch(body); a.array {
		parts, _ = jsonrpc.Split(body, maxArray)
	}
	for _, part := range parts {
		if msg, err := jsonrpc.Parse(part); err == nil && msg.Kind() == jsonrpc.Request {
			a.ids, a.listen = append(a.ids, msg.ID), msg.Method == mcp.MethodListen
		}
	}
	return len(body), nil
}

// maxArray bounds how many requests of an array are answered.
const maxArray = 1024

// words are the messages that end what was asked for. A subscription ends as it does when its
// server wants it so.
func (a *asked) words(e *jsonrpc.Error) (all [][]byte) {
	for _, id := range a.ids {
		if a.listen && !a.array {
			return [][]byte{jsonrpc.AppendResult(nil, id, unsubscribed(id))}
		}
		all = append(all, jsonrpc.AppendError(nil, id, e))
	}
	return all
}

// unsubscribed is the result with which the bridge ends a subscription: it has the name of it,
// as the protocol wants.
func unsubscribed(id jsonrpc.ID) []byte {
	return subscription([]byte(`{"resultType":"complete","_meta":{}}`), id)
}

// lastWordsBody is the body of an event stream that ends with an answer when the bridge gives its request
// up. Of other bodies that have begun nothing can be said any more: they break off.
type lastWordsBody struct {
	io.ReadCloser
	of   *passage
	ctx  context.Context // of the request that is sent
	over bool
	rest []byte

	answers answers
}

// withLastWords has the stream of a response end so.
func withLastWords(resp *http.Response) {
	ctx := resp.Request.Context()
	of := passageOf(ctx)
	if of != nil && resp.ContentLength < 0 && isStream(resp) && isPlain(resp) {
		resp.Body = &lastWordsBody{ReadCloser: resp.Body, of: of, ctx: ctx, answers: answers{of: of}}
	}
}

// isStream reports whether a response is a stream of events.
func isStream(resp *http.Response) bool {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "text/event-stream")
}

// isPlain reports whether a response can be read: it is not compressed.
func isPlain(resp *http.Response) bool { return resp.Header.Get("Content-Encoding") == "" }

// Read implements io.Reader.
func (b *lastWordsBody) Read(p []byte) (int, error) {
	if !b.over {
		n, err := b.ReadCloser.Read(p)
		b.answers.in(p[:n])
		if n > 0 || err == nil || err == io.EOF {
			return n, err
		}
		why := whyGivenUp(b.ctx)
		if why == nil {
			return n, err
		}
		if b.begin(why); len(b.rest) == 0 && !b.of.due().done && !isLapsed(b.ctx) {
			return n, err
		}
	}
	n := copy(p, b.rest)
	if b.rest = b.rest[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// begin has the events follow. Where one was broken off its end comes first: what there is of it is no
// message, which clients pass over.
func (b *lastWordsBody) begin(why error) {
	b.over = true
	b.of.end(why)
	_, e := lastWord(why)
	for i, word := range b.of.due().words(e) {
		if i == 0 {
			b.rest = append(b.rest, "\n\n"...)
		}
		b.rest = sse.AppendEvent(b.rest, "", word)
	}
}
