package again

import (
	"bytes"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
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
//	over       the call ended; its outcome is kept where that did not get to the client (outcome.go)
//
// From attached to detached it goes when the request's time is over while a
// question is open; back, when the same call comes again: same session, same person,
// same method, same params. Then open questions are shown again, and held answers count.
//
// A request whose connection broke stays attached, since its client may come back for the rest of its
// stream. The same call takes its place all the same, once something has been asked that a person
// may take longer to answer than the client waits: nothing is to be asked or done twice.
type Reply struct {
	of   Options
	flow Flow
	req  downstream.Request // that the flow began with

	hashing sync.Once
	hash    uint64 // of what makes it the same call

	mu    sync.Mutex
	known bool             // where it waits for the same call: something of the kind was asked
	out   downstream.Reply // of the request that waits; nil: detached or over
	id    jsonrpc.ID       // of that request
	token []byte           // of its progress, raw; nil: it wants none
	first bool             // it is the request that the flow began with
	since time.Time        // when that request came
	over  bool
	open  []Question
	held  []mrtr.Event
	timer *time.Timer // of the request, from the first question on, or of the outcome; nil before
	kept  *outcome    // of a call that is over; nil: there is nothing to fetch
	until time.Time   // when the same call is another one in any case
}

// Options say how a call waits.
type Options struct {
	Session  Session
	Calls    *Replies        // where it waits for the same call; nil: nowhere
	Stranger string          // the principal of a request without a session; empty with one
	Unproven bool            // who makes it may know no more than the session's id
	Account  *budget.Account // what an outcome that waits is charged to
	Version  mcp.Version     // that the client speaks
	Wait     time.Duration   // how long a request waits for a page
	Life     time.Duration   // how long the call may take altogether, and wait for the same one
	Patience time.Duration   // of the client; 0: none is known
	Astray   bool            // the same call may reach a replica that knows nothing of this one
	Stopping func() bool     // no call can be made again any more; nil: never
}

// Session is the conversation that a call belongs to.
type Session interface {
	// Hears reports whether a log message of a level is for the client.
	Hears(level string) bool
	// Detached tells that a call of somebody (Flow.Person) may wait for the same one to be made again.
	// Of several the one told of last is found from other replicas.
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
	// Outlives tells that the request which the flow began with has been answered while the flow goes
	// on: what that held is the flow's own now.
	Outlives()
	// Size is what the flow keeps in memory, in bytes.
	Size() int
	// By reports whether the call was made by whom caller is.
	By(caller downstream.Caller) bool
	// Person names who made the call, among those behind a principal.
	Person() string
	// Close ends the call, with what is known of it then.
	Close(cause error)
	// Renew notes the newest credentials of the principal.
	Renew(caller downstream.Caller)
}

// New returns the Reply of a call that a request begins, which out answers. Bind completes it.
func New(of Options, req downstream.Request, out downstream.Reply) *Reply {
	now := time.Now()
	return &Reply{of: of, req: req, out: out, id: req.ID, token: req.ProgressToken, first: true, since: now, until: now.Add(of.Life)}
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

// attach gives a call for which nobody waits a request that does; nil: somebody waits.
func (p *Reply) attach(req *downstream.Request, out downstream.Reply) *Rejoined {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.awaitsLocked() {
		return nil
	}
	r := &Rejoined{call: p, out: out, open: slices.Clone(p.open), held: p.held, before: lost{p.out, p.id, p.first}, kept: p.kept}
	p.id, p.token, p.first, p.since, p.held, p.kept = req.ID, req.ProgressToken, false, time.Now(), nil, nil
	if !p.over {
		p.out = out
	}
	p.waitLocked()
	return r
}

// awaits reports whether the call waits for the same one: no request waits for it, or that of a client
// whose connection broke, or its outcome has not got to one.
func (p *Reply) awaits() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.awaitsLocked()
}

func (p *Reply) awaitsLocked() bool {
	switch {
	case p.over:
		return p.kept != nil && !p.kept.fetched()
	case p.out == nil:
		return true
	}
	return p.known && !p.out.Attached()
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

// Answered tells other replicas of the call once more, since an answer is held: of equal calls that wait at several
// of them it is the one to go on.
func (p *Reply) Answered() {
	p.mu.Lock()
	known := p.known
	p.mu.Unlock()
	if known {
		p.of.Session.Detached(&p.req, p.flow.Person())
	}
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

// Ranks of calls that wait for the same one, for which of several comes first: an outcome before what
// is under way, and both before answers that are held back.
const (
	hasOutcome = 1<<20 - iota
	isUnderWay
)

// detached reports whether the call goes on, and no request waits for it.
func (p *Reply) detached() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out == nil && !p.over
}

// rank says how far the call is.
func (p *Reply) rank() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.over:
		return hasOutcome
	case p.out != nil && len(p.open) == 0:
		return isUnderWay
	}
	return len(p.held)
}

// reply returns the request that waits, or nil.
func (p *Reply) reply() downstream.Reply {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out
}

// end takes the last request that waits, or nil.
func (p *Reply) end() (out downstream.Reply) {
	p.of.Calls.forget(p)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.endLocked()
}

func (p *Reply) endLocked() (out downstream.Reply) {
	out = p.out
	p.out, p.over, p.open, p.held = nil, true, nil, nil
	p.waitLocked()
	return out
}

// seed makes the hashes of calls such that nobody can have two of them be the same.
var seed = maphash.MakeSeed()

// like reports whether a request may be the same call again, for which nobody waits now.
func (p *Reply) like(version mcp.Version, req *downstream.Request) bool {
	return p.req.Method == req.Method && p.of.Version == version && bytes.Equal(p.req.Name, req.Name) && p.awaits()
}

// repeats reports whether a request that is like the call, with this hash, has the same params, however
// they are spelled, as a model may write its arguments in another order: no name is twice in an object of
// a message that was taken (rawjson.Survey), so their order means nothing. A call that has others
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
