package passthrough

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/mcp"
)

// overdue is why a request ended whose server took too long. To who asks only that, it is the end of a deadline.
type overdue struct{ text string }

// Error says what is said of a connection's requests, too, and whether the request was executed.
func (o *overdue) Error() string { return o.text + "; whether the request was executed is not known" }

// Is is for errors.Is.
func (*overdue) Is(target error) bool { return target == context.DeadlineExceeded }

var (
	tooSilent = &overdue{"the server was silent for too long (timeouts.round)"}
	tooLong   = &overdue{"the server did not answer in time (timeouts.flow)"}
)

// pace holds a server to its time for one request that is handed on as it is: Limits.Round for each
// silence, and Limits.Call for all. A silence lasts while the server is waited for, so that neither a person
// who signs in before the request leaves nor a client that reads slowly is taken for one. It ends
//
//	with the head of the response
//	with each message of an event stream of a modern server; comments are none
//	with each part of a response that is no stream, or that is compressed
//
// On the stream of a legacy server it is none: the server may have asked the client something, and wait for a
// person. It may do so before it answers, too, on the stream of the session: then there is none either, nor where
// that stream may be one that nobody here hears.
type pace struct {
	modern bool
	round  time.Duration
	asks   func(answers bool) bool // whether the server may have asked something elsewhere since the request began
	begun  atomic.Bool             // the response has
	end    context.CancelCauseFunc

	whole   *time.Timer
	silence *time.Timer // runs between wait and got
	left    time.Duration
	since   time.Time
}

// keepPace bounds a request that is about to be handed on until stop is called. What never ends by itself has no
// bound: nil.
func (l *Limits) keepPace(r *http.Request, asks func(answers bool) bool, end context.CancelCauseFunc) (p *pace, stop func()) {
	if neverEnds(r) {
		return nil, func() {}
	}
	p = &pace{modern: isModern(r), round: l.Round, left: l.Round, asks: asks, end: end}
	p.whole = time.AfterFunc(l.Call, func() { end(tooLong) })
	p.silence = time.AfterFunc(l.Round, p.silent)
	p.silence.Stop() // nobody waits yet
	return p, func() { p.whole.Stop(); p.silence.Stop() }
}

// neverEnds reports whether a request is for a stream that ends when somebody wants it to. What a header says
// of a request is only believed if its body says it, too.
func neverEnds(r *http.Request) bool {
	return r.Method == http.MethodGet || endless(r) && askedBy(r).listen
}

// isModern reports whether a request says in its head what it is about, and is of no session, as those of the
// modern era.
func isModern(r *http.Request) bool {
	return r.Header.Get(mcp.HeaderMethod) != "" && r.Header.Get(mcp.HeaderSessionID) == ""
}

func (p *pace) silent() {
	if p.modern || !p.asks(p.begun.Load()) {
		p.end(tooSilent)
	}
}

// wait says that the server is waited for.
func (p *pace) wait() {
	p.since = time.Now()
	p.silence.Reset(p.left)
}

// got says that something came. alive: it ends the silence.
func (p *pace) got(alive bool) {
	p.silence.Stop()
	p.left -= time.Since(p.since)
	if alive {
		p.left = p.round
	}
}

// paced is the transport to a server that is held to its time. What is around it waits for others.
type paced struct {
	http.RoundTripper
	heard *streams
}

// RoundTrip implements http.RoundTripper.
func (t paced) RoundTrip(r *http.Request) (*http.Response, error) {
	of := passageOf(r.Context())
	if of == nil {
		return t.RoundTripper.RoundTrip(r)
	}
	if of.pace == nil {
		return t.endless(r)
	}
	of.pace.wait()
	resp, err := t.RoundTripper.RoundTrip(r)
	of.pace.got(true)
	of.pace.begun.Store(true)
	if err != nil {
		return nil, err
	}
	if of.pace.modern || !isStream(resp) {
		resp.Body = &pacedBody{resp.Body, of.pace, alive(resp)}
	}
	return resp, nil
}

// alive returns what tells whether a part of a response ends a silence. Of one that cannot be read each does.
func alive(resp *http.Response) func(part []byte) bool {
	if isStream(resp) && isPlain(resp) {
		return new(messages).in
	}
	return func(part []byte) bool { return len(part) > 0 }
}

// endless has the stream of a session of the server watched for what it may ask there.
func (t paced) endless(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	if session := r.Header.Get(mcp.HeaderSessionID); err == nil && session != "" && isStream(resp) {
		resp.Body = &streamBody{ReadCloser: resp.Body, of: t.heard, session: session, alive: alive(resp)}
		t.heard.open(session)
	}
	return resp, err
}

// pacedBody is a body that the server is held to its time with.
type pacedBody struct {
	io.ReadCloser
	pace  *pace
	alive func(part []byte) bool
}

// Read implements io.Reader.
func (b *pacedBody) Read(p []byte) (int, error) {
	b.pace.wait()
	n, err := b.ReadCloser.Read(p)
	b.pace.got(n > 0 && b.alive(p[:n]))
	return n, err
}

// whyGivenUp returns why the bridge has given a request up; nil: it has not.
func whyGivenUp(ctx context.Context) error {
	if late, ok := errors.AsType[*overdue](context.Cause(ctx)); ok {
		return late
	}
	switch {
	case isLapsed(ctx):
		return downstream.ErrLapsed
	case isStopped(ctx):
		return stopped{}
	}
	return nil
}
