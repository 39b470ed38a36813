package again

import (
	"bytes"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/rawjson"
)

// Reply is that of a call that may outlive its request: a person takes
// longer to answer than the client waits. It is
//
//	attached   a request waits for the answer, and what is sent goes to it
//	detached   that request was answered with what is pending; answers are held back,
//	           so that nothing runs for which nobody waits
//	over       the call ended
//
// From attached to detached it goes when the request's time is over while a
// question is open; back, when the same call comes again: same session, same person,
// same method, same params. Then open questions are shown again, and held answers count.
type Reply struct {
	of   Options
	flow Flow
	req  downstream.Request // that the flow began with

	hashing sync.Once
	hash    uint64 // of what makes it the same call

	mu    sync.Mutex
	out   downstream.Reply // of the request that waits; nil: detached or over
	id    jsonrpc.ID       // of that request
	token []byte           // of its progress, raw; nil: it wants none
	first bool             // it is the request that the flow began with
	since time.Time        // when that request came
	over  bool
	open  []Question
	held  []mrtr.Event
	timer *time.Timer // of the request, from the first question on; nil before
}

// Options say how a call waits.
type Options struct {
	Session  Session
	Calls    *Replies      // where it waits for the same call; nil: nowhere
	Stranger string        // the principal of a request without a session; empty with one
	Version  mcp.Version   // that the client speaks
	Wait     time.Duration // how long a request waits for a page
	Patience time.Duration // of the client; 0: none is known
	Astray   bool          // the same call may reach a replica that knows nothing of this one
	Stopping func() bool   // no call can be made again any more; nil: never
}

// Session is the conversation that a call belongs to.
type Session interface {
	// Hears reports whether a log message of a level is for the client.
	Hears(level string) bool
	// Detached tells that a call of somebody (Flow.Person) waits for the same one to be made again.
	Detached(req *downstream.Request, person string)
	// Background runs work that belongs to no request any more.
	Background(work func())
}

// Flow is the call itself, behind its Reply.
type Flow interface {
	Drive(mrtr.Event)
	// Detach has leave let go of the request that waits, unless an answer to that is under way:
	// what comes of the flow goes to one request, or waits for one. first says that it
	// was the one that the flow began with.
	Detach(leave func() (first bool))
	// By reports whether the call was made by whom caller is.
	By(caller downstream.Caller) bool
	// Person names who made the call, among those behind a principal.
	Person() string
	// Renew notes the newest credentials of the principal.
	Renew(caller downstream.Caller)
}

// New returns the Reply of a call that a request begins, which out answers. Bind completes it.
func New(of Options, req downstream.Request, out downstream.Reply) *Reply {
	return &Reply{of: of, req: req, out: out, id: req.ID, token: req.ProgressToken, first: true, since: time.Now()}
}

// Bind tells whose Reply it is, before the call starts.
func (p *Reply) Bind(flow Flow) { p.flow = flow }

// GoesBy returns the id of the request that waits for the call; empty: none does.
func (p *Reply) GoesBy() jsonrpc.ID {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out == nil {
		return ""
	}
	return p.id
}

// Waits reports whether a request waits for the call.
func (p *Reply) Waits() bool { return p.reply() != nil }

// Rejoined is a call that a request has just repeated.
type Rejoined struct {
	call *Reply
	out  downstream.Reply
	open []Question
	held []mrtr.Event
}

// GoOn shows what is open to the request that waits now, and lets the answers count that
// were held back.
func (r *Rejoined) GoOn() {
	for i := range r.open {
		if q := &r.open[i]; q.Msg.Method != "" && !q.Met {
			r.out.Send(q.Msg)
		}
	}
	if len(r.open) > 0 {
		r.call.tell()
	}
	for _, ev := range r.held {
		r.call.flow.Drive(ev)
	}
	r.call.flow.Drive(mrtr.Tick(true)) // what came due while nobody waited
}

// attach gives a detached call a request that waits. It returns what is open and what
// was held back.
func (p *Reply) attach(req *downstream.Request, out downstream.Reply) (open []Question, held []mrtr.Event, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || p.out != nil {
		return nil, nil, false
	}
	p.out, p.id, p.token, p.first, p.since = out, req.ID, req.ProgressToken, false, time.Now()
	held, p.held = p.held, nil
	p.waitLocked()
	return slices.Clone(p.open), held, true
}

// waitLocked sets the clock of the request by what is open: for a page a call waits for
// a while, for the client itself no longer than that waits.
func (p *Reply) waitLocked() {
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	linked := slices.ContainsFunc(p.open, func(q Question) bool { return q.Link != "" && !q.Met })
	switch {
	case p.out == nil || len(p.open) == 0:
	case linked:
		p.timer = time.AfterFunc(p.of.Wait, p.expire)
	case p.of.Patience > 0:
		p.timer = time.AfterFunc(time.Until(p.since.Add(p.of.Patience)), p.expire)
	}
}

// Hold keeps an event for the request that is to come, and reports whether there is
// none that waits.
func (p *Reply) Hold(ev mrtr.Event) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out != nil || p.over {
		return false
	}
	p.held = append(p.held, ev)
	return true
}

// Size is what the call keeps of its client that no request of it holds any more, in bytes: its
// params, and answers that are held back.
func (p *Reply) Size() (size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out == nil || !p.first {
		size = len(p.req.Params)
	}
	for i := range p.held {
		size += p.held[i].Size()
	}
	return size
}

// answers counts the answers that are held back.
func (p *Reply) answers() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.held)
}

// reply returns the request that waits, or nil.
func (p *Reply) reply() downstream.Reply {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out
}

// end takes the last request that waits, or nil.
func (p *Reply) end() (out downstream.Reply, id jsonrpc.ID, first bool) {
	p.of.Calls.forget(p)
	p.mu.Lock()
	defer p.mu.Unlock()
	out, id, first = p.out, p.id, p.first
	p.out, p.over, p.open, p.held = nil, true, nil, nil
	p.waitLocked()
	return out, id, first
}

// seed makes the hashes of calls such that nobody can have two of them be the same.
var seed = maphash.MakeSeed()

// like reports whether a request may be the same call again, for which nobody waits now.
func (p *Reply) like(version mcp.Version, req *downstream.Request) bool {
	return !p.Waits() && p.req.Method == req.Method && p.of.Version == version && bytes.Equal(p.req.Name, req.Name)
}

// repeats reports whether a request that is like the call, with this hash, has the same params, however
// they are spelled, as a model may write its arguments in another order. A call that has others
// costs no more than a look at its own hash.
func (p *Reply) repeats(req *downstream.Request, hash uint64) bool {
	p.hashing.Do(func() { p.hash = hashOf(&p.req) })
	return p.hash == hash && rawjson.Equal(plain(&p.req), plain(req))
}

func hashOf(req *downstream.Request) uint64 { return rawjson.Hash(seed, plain(req)) }

// plain returns the params of a call without what differs from request to request.
func plain(req *downstream.Request) []byte {
	return rawjson.Apply(nil, req.Params, rawjson.Edit{Name: "_meta"})
}
