package stdio

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/inorder"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/internal/transport"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// pipe is one channel of newline-delimited messages, shared by all requests
// (E-46). Key invariants:
//   - ids, and the progress tokens that they stand for, are made here and nowhere else;
//   - one goroutine writes, one reads; callers wait on their own channels;
//   - what is written is a request or notifications/cancelled (E-50);
//   - the read side never waits for a caller.
type pipe struct {
	log   zerolog.Logger
	noise zerolog.Logger // for what a process can print without end
	limit int
	own   *budget.Account // for what belongs to no call, or one without an account
	sole  bool            // Options.Sole

	*outlet               // ended when no more answers can come
	heard   atomic.Uint64 // counts what came

	mu      sync.Mutex
	waiting map[jsonrpc.ID]*waiter
	over    bool
	why     string // it is over; "" when the process ended by itself
}

func newPipe(limit int, own *budget.Account, log zerolog.Logger) *pipe {
	noise := logfield.AtMost(SkippedBurst, log)
	return &pipe{log: log, noise: noise, limit: limit, own: own,
		outlet: newOutlet(), waiting: map[jsonrpc.ID]*waiter{}}
}

// read dispatches what the server writes, until its end. Whose a line is shows when it is whole:
// until then the pipe's own account is charged.
func (p *pipe) read(r io.Reader) {
	held := coming{pipe: p, hold: budget.On(p.own)}
	defer held.next()
	lines := transport.NewLineReader(r, p.limit)
	lines.Tell(&held)
	readLines(lines, p.dispatch, p.passedOver)
}

// coming is what a line is charged to while it comes. Any line may be the answer that a retry waits for, which is not
// refused for want of memory (upstream.Owed): while one waits, one line at a time, of all processes, may have more than there is, and the
// process waits a little until it may.
type coming struct {
	pipe  *pipe
	hold  budget.Hold
	alone budget.Alone
	until time.Time // it waits for memory; zero: it has yet to
}

const (
	lineLook     = 50 * time.Millisecond // between two looks whether there is memory
	linePatience = 5 * time.Second       // the other calls of the process wait, too
)

// Set implements transport.Held.
func (c *coming) Set(bytes int) error {
	if bytes == 0 {
		c.next()
		return nil
	}
	for ; ; time.Sleep(lineLook) {
		err := c.hold.Set(bytes)
		if err == nil || !c.pipe.owes() {
			return err
		}
		if c.until.IsZero() {
			c.until = time.Now().Add(linePatience)
		}
		if err = c.alone.Press(&c.hold, bytes-c.hold.Bytes()); err == nil || time.Now().After(c.until) {
			return err
		}
	}
}

// next says that the line is over.
func (c *coming) next() {
	c.hold.Release()
	c.alone.End()
	c.until = time.Time{}
}

// owes reports whether a retry waits for its answer.
func (p *pipe) owes() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.waiting {
		if w.owed {
			return true
		}
	}
	return false
}

// readLines passes on what a process writes, until its end: whole lines to line, of
// those beyond the limit the beginning and the end to tooLarge, and of those that were refused,
// which says why.
func readLines(lines *transport.LineReader, line func([]byte), tooLarge func(beginning, end []byte, why error)) {
	for {
		text, err := lines.Read()
		switch {
		case err == nil:
			line(text)
		case errors.Is(err, transport.ErrTooLarge), lines.Refused() != nil:
			tooLarge(text, lines.Tail(), err)
		default:
			return
		}
	}
}

// end fails everything that is still waiting: the server is gone (E-48).
func (p *pipe) end() {
	p.mu.Lock()
	if !p.over {
		p.over = true
		p.shut()
	}
	p.mu.Unlock()
}

// SkippedLine is what the log says of a line of a process that is no message.
const SkippedLine = "upstream printed a line that is no message; skipped"

// SkippedBurst is how many such lines the log tells of per minute, so that a process
// that prints garbage does not fill the disk.
const SkippedBurst = 20

// dispatch routes one line. A line that is no message is skipped: some servers
// print banners.
func (p *pipe) dispatch(line []byte) {
	p.heard.Add(1)
	msg, err := jsonrpc.Parse(line)
	if len(line) > upstream.HeldStep && 2*(len(msg.Params)+len(msg.Result)) < len(line) { // the rest of it is nobody's
		msg.Params, msg.Result = bytes.Clone(msg.Params), bytes.Clone(msg.Result)
	}
	switch {
	case err != nil && msg.ID != "":
		p.settle(msg.ID, nil, &upstream.Failure{Cause: upstream.BadResponse, Sent: true, Err: err,
			Detail: "the upstream sent a malformed message: " + fault.Clip(err.Error())})
	case err != nil:
		p.noise.Warn().Int("bytes", len(line)).Msg(SkippedLine)
	case msg.Kind() == jsonrpc.Response:
		p.settle(msg.ID, &upstream.Answer{Result: msg.Result, Error: msg.Error}, nil)
	case msg.Kind() == jsonrpc.Request: // C-10: never answered
		p.log.Debug().Msg("unexpected upstream request ignored")
	default:
		p.notification(msg)
	}
}

// passedOver fails the call whose answer is above the limit, or was refused. Its id stands
// before the result or behind it, as servers usually write it.
func (p *pipe) passedOver(beginning, end []byte, why error) {
	p.heard.Add(1)
	failed := upstream.NotTakenIn(why)
	if errors.Is(why, transport.ErrTooLarge) {
		failed = &upstream.Failure{Cause: upstream.TooLarge, Sent: true, Detail: "the response of the upstream exceeds the limit"}
		p.noise.Warn().Int("limit", p.limit).Msg("upstream sent a message beyond the limit; skipped")
	} else {
		p.noise.Warn().Err(why).Msg("a message of the upstream was not taken in; skipped")
	}
	msg, _ := jsonrpc.Parse(beginning)
	if id := cmp.Or(msg.ID, jsonrpc.TrailingID(end)); id != "" {
		p.settle(id, nil, failed)
	}
}

// settle hands an outcome to the request that waits for it. Late answers to
// abandoned requests find nobody (E-47).
func (p *pipe) settle(id jsonrpc.ID, ans *upstream.Answer, failed *upstream.Failure) {
	p.mu.Lock()
	w := p.waiting[id]
	delete(p.waiting, id)
	p.mu.Unlock()
	if w != nil {
		w.finish(ans, failed)
	}
}

// notification finds the request that a notification belongs to (E-46).
func (p *pipe) notification(msg jsonrpc.Message) {
	if msg.Method == mcp.NotificationCancelled { // C-19: only ever ends a listen
		id := jsonrpc.ID(rawjson.Get(msg.Params, "requestId"))
		if w := p.find(func(w *waiter) bool { return w.listen && w.id == id }); w != nil {
			p.settle(id, nil, &upstream.Failure{Cause: upstream.Lost, Sent: true, Detail: "the upstream ended the subscription"})
		}
		return
	}
	var w *waiter
	meta := rawjson.Get(msg.Params, "_meta")
	switch {
	case msg.Method == mcp.NotificationProgress:
		id := jsonrpc.ID(rawjson.Get(msg.Params, progressToken))
		w = p.find(func(w *waiter) bool { return w.token != nil && w.id == id })
	case rawjson.Has(meta, mcp.MetaSubscriptionID):
		w = p.find(func(w *waiter) bool { return w.listen && upstream.Subscribed(msg.Params, w.id) })
	case msg.Method == mcp.NotificationMessage: // C-8
		w = p.logger()
	case p.sole: // C-9
		w = p.only(func(w *waiter) bool { return !w.listen })
	}
	switch {
	case w == nil:
		p.log.Debug().Str("method", fault.Clip(msg.Method)).Msg("upstream notification without an owner dropped")
	case !w.push(msg):
		p.log.Debug().Str("method", fault.Clip(msg.Method)).Msg("upstream notification dropped: the client is too slow")
	}
}

func (p *pipe) find(match func(*waiter) bool) *waiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.waiting {
		if match(w) {
			return w
		}
	}
	return nil
}

// only returns the one waiter that matches, nil when there are several.
func (p *pipe) only(match func(*waiter) bool) *waiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found *waiter
	for _, w := range p.waiting {
		if match(w) {
			if found != nil {
				return nil
			}
			found = w
		}
	}
	return found
}

// logger returns a waiter whose client log messages are for, nil where they may be for several: which of its requests they
// are about makes no difference to a session, nor to the one that a process is for.
func (p *pipe) logger() (found *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.waiting {
		switch {
		case !w.logs:
		case found == nil || p.sole:
			found = w
		case w.session == nil || w.session != found.session:
			return nil
		}
	}
	return found
}

// do sends a request and waits for its outcome.
func (p *pipe) do(ctx context.Context, req *request, to sink) (*upstream.Answer, error) {
	req.id = upstream.NextID()
	account := cmp.Or(req.call.Account, p.own)
	w := newWaiter(req, to, account)
	_, w.owed = req.call.Held.(upstream.Owed)
	defer w.close()
	p.mu.Lock()
	if p.over {
		p.mu.Unlock()
		return nil, &upstream.Failure{Cause: upstream.Lost, Detail: "the upstream process has ended"}
	}
	p.waiting[req.id] = w
	p.mu.Unlock()
	defer p.forget(req.id)
	if err := p.tell(ctx, account, req.line(), &w.place, req.call.Link); err != nil {
		return nil, err
	}
	ans, err := w.wait(ctx, p.ended, to)
	if err == nil { // from here on the answer is charged to the call
		paid := w.hand()
		if short := upstream.TakeOver(req.call.Held, &paid, len(ans.Result)); short != nil {
			ans, err = nil, upstream.NotTakenIn(short)
		}
	}
	if f, ok := err.(*upstream.Failure); ok && f.Cause == upstream.Lost {
		p.explain(f)
	}
	if f, ok := err.(*upstream.Failure); ok && ctx.Err() != nil && (f.Cause == upstream.Canceled || f.Cause == upstream.Timeout) && cancellable(req.call.Method) {
		p.cancel(req.id, f.Cause)
	}
	return ans, err
}

// cancellable reports whether a server may be told that nobody waits for a request of this method any more. What it hears
// first may decide of which era it is (E-45), and initialize must not be cancelled.
func cancellable(method string) bool {
	return method != mcp.MethodDiscover && method != mcp.MethodInitialize
}

// blame says why the pipe is about to end.
func (p *pipe) blame(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.why = why
}

// blamed reports whether it was said why the pipe ended.
func (p *pipe) blamed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.why != ""
}

// explain puts a better reason into the failure of a call that the end cut off.
func (p *pipe) explain(f *upstream.Failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over && p.why != "" {
		f.Detail = p.why
	}
}

// tell hands a line over for writing, which an account is charged with until then.
func (p *pipe) tell(ctx context.Context, account *budget.Account, line []byte, place, of *inorder.Link) error {
	switch err := p.put(ctx, account, line, place, of); {
	case err == nil:
		return nil
	case budget.Short(err):
		return &upstream.Failure{Cause: upstream.NoMemory, Err: err, Detail: "the message was not handed on: " + err.Error()}
	case errors.Is(err, ErrEnded):
		return &upstream.Failure{Cause: upstream.Lost, Detail: "the upstream process has ended"}
	}
	return upstream.Interrupted(ctx, false)
}

func (p *pipe) forget(id jsonrpc.ID) {
	p.mu.Lock()
	delete(p.waiting, id)
	p.mu.Unlock()
}

// cancel tells the server that nobody waits any more (E-47). When the server
// does not even read its input, telling it is of no use.
func (p *pipe) cancel(id jsonrpc.ID, why upstream.Cause) {
	reason := "cancelled by the client"
	if why == upstream.Timeout {
		reason = "timed out"
	}
	params := []byte(`{"requestId":` + string(id) + `,"reason":"` + reason + `"}`)
	if !p.offer(transport.EndLine(jsonrpc.AppendNotification(nil, mcp.NotificationCancelled, params))) {
		p.log.Warn().Msg("cancellation not sent: the upstream does not read its input")
	}
}
