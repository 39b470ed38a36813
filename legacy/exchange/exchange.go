package exchange

import (
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/agenda"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/legacy/quiet"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/legacy/stream"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/sessions"
)

// phase is how far the response of an exchange is.
type phase uint8

const (
	open      phase = iota // nothing written: JSON, SSE and a refusal are all possible
	streaming              // an SSE stream
	answering              // the whole answer is being written, without the lock; the handler stays
	done                   // answered, refused or abandoned
)

// Exchange is the work that one POST started, and its Reply. It outlives the
// HTTP request when the client leaves. Of the response it knows the writer
// until the first byte; an SSE response belongs to its carrier.
//
//	      Send, commit delay                last Finish or Abandon
//	open ────────────────────▶ streaming ─────────────────────────▶ done
//	  └──────────────────────▶ answering ─────────────────────────▶
//	    last Finish or Abandon, Refuse       it is written
//
// Whoever holds mu may change the phase; from answering only who is writing does.
type Exchange struct {
	commit  agenda.Entry // on Endpoint.commits while nothing is written
	end     *Endpoint
	session *session.Session // nil without one

	accept   web.Accept
	batch    bool   // a JSON response is an array
	whole    bool   // the response was written whole; guarded by mu
	requests int32  // how many it answers; more than one in a batch
	auth     string // the credentials that it carries
	of       string // the principal of who made it
	unproven bool   // the session is bound to others
	follows  bool   // it is about something under way
	hold     budget.Hold
	place    func()       // gives back the place that its requests take; nil: none
	lasting  atomic.Int32 // what outlasts it

	phase    phase // with what follows guarded by mu
	left     int32 // responses still to come
	mu       sync.Mutex
	w        http.ResponseWriter             // nil once the handler left
	r        *http.Request                   // the same
	parts    [][]byte                        // responses of a batch that wait for the others
	gathered budget.Hold                     // of these
	stream   atomic.Pointer[sessions.Stream] // nil until the response is one; read without the lock
	carrier  *stream.Response
	stored   *storedCall   // nil: nothing was kept
	changed  chan struct{} // closed when phase leaves open; made only to wait
}

// Begin opens an exchange for one request, nil during shutdown and in a session that has been
// ended. hold is what its body is charged to; it moves to the exchange. What follows is about something
// under way, and begins during shutdown, too.
func (e *Endpoint) Begin(w http.ResponseWriter, r *http.Request, s *session.Session, a web.Accept, hold *budget.Hold, caller *downstream.Caller, follows bool) *Exchange {
	ex := newExchange(e, w, r, s, a, 1)
	ex.of, ex.unproven, ex.follows = caller.Principal, caller.Unproven, follows
	return e.begin(ex, hold)
}

// BeginBatch opens an exchange for a batch with this many requests. Each is answered through
// a Member.
func (e *Endpoint) BeginBatch(w http.ResponseWriter, r *http.Request, s *session.Session, a web.Accept, hold *budget.Hold, caller *downstream.Caller, requests int) *Exchange {
	ex := newExchange(e, w, r, s, a, int32(requests))
	ex.of, ex.unproven, ex.batch = caller.Principal, caller.Unproven, true
	return e.begin(ex, hold)
}

func newExchange(e *Endpoint, w http.ResponseWriter, r *http.Request, s *session.Session, a web.Accept, requests int32) *Exchange {
	return &Exchange{end: e, session: s, accept: a, auth: web.Header(r.Header, "Authorization"), w: w, r: r, requests: requests, left: requests}
}

func (e *Endpoint) begin(ex *Exchange, hold *budget.Hold) *Exchange {
	if !e.start(ex) {
		return nil
	}
	ex.hold = hold.Move()
	ex.gathered = budget.On(ex.hold.Account())
	e.await(ex)
	return ex
}

// Occupy has a place that the exchange takes given back when it is over; nil: it takes
// none. It is to be called before anything answers.
func (ex *Exchange) Occupy(leave func()) { ex.place = leave }

// start counts an exchange in, but not during shutdown, nor in a session that has been ended.
func (e *Endpoint) start(ex *Exchange) bool {
	if !e.opt.Gate.Admit(ex.follows) {
		return false
	}
	if s := ex.session; s != nil && !s.Begin(ex.requests, ex.unproven) {
		e.opt.Gate.Exit()
		return false
	}
	return true
}

// await has an exchange become a stream if it takes long, which may be at once: it must be whole.
func (e *Endpoint) await(ex *Exchange) {
	ex.commit.Item = ex
	if ex.accept.Has(web.AcceptSSE) {
		e.commits.Add(&ex.commit)
	}
}

// Interactive implements Reply.
func (ex *Exchange) Interactive() bool { return ex.accept.Has(web.AcceptSSE) }

// Send implements Reply.
func (ex *Exchange) Send(msg downstream.Message) {
	ex.Queue(msg)
	ex.Flush()
}

// Queue implements Reply.
func (ex *Exchange) Queue(msg downstream.Message) {
	if !ex.Interactive() {
		return
	}
	st := ex.stream.Load()
	if st == nil {
		ex.mu.Lock()
		st = ex.startStreamLocked()
		ex.mu.Unlock()
	}
	switch {
	case st == nil:
	case msg.Kind() == jsonrpc.Request:
		st.Ask(message.TextOf(&msg), string(msg.ID))
	default:
		st.Queue(message.TextOf(&msg))
	}
}

// Flush implements Reply.
func (ex *Exchange) Flush() {
	if st := ex.stream.Load(); st != nil {
		st.Flush()
	}
}

// Finish implements Reply.
func (ex *Exchange) Finish(msg downstream.Message) {
	if !ex.keepLastWord(&msg, answerPatience) { // told before, it might come twice
		ex.yield()
		return
	}
	ex.complete(&msg)
}

// Abandon implements Reply.
func (ex *Exchange) Abandon() {
	if !ex.keepLastWord(nil, lastWordPatience) {
		ex.yield()
		return
	}
	ex.complete(nil)
}

// Address implements Reply. Whether the client has left is asked here only where the address
// goes into a record: else the stream asks, before it writes.
func (ex *Exchange) Address() downstream.Address {
	if ex.session == nil || !ex.Interactive() {
		return downstream.Address{}
	}
	ex.mu.Lock()
	defer ex.mu.Unlock()
	var st *sessions.Stream
	if ex.session.Stored() {
		st = ex.startKnownLocked()
	} else {
		st = ex.startStreamLocked()
	}
	if st == nil {
		return downstream.Address{}
	}
	return downstream.Address{Session: ex.session.ID(), Stream: st.ID()}
}

// Reachable implements Reply. A client that left before it saw the id of an event
// has no way back.
func (ex *Exchange) Reachable() bool {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	switch ex.phase {
	case open:
		return ex.w != nil && !quiet.Departed(ex.r)
	case streaming:
		return ex.stream.Load().Reachable()
	}
	return true
}

// Attached implements Reply. A request without a response becomes a stream at once. That a client
// has left is noted: what is written to it from now on would go nowhere, and count as delivered.
func (ex *Exchange) Attached() bool {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	if ex.phase != answering && ex.r != nil && quiet.Departed(ex.r) {
		if ex.carrier != nil {
			ex.carrier.Depart()
		}
		ex.w, ex.r = nil, nil
	}
	if st := ex.stream.Load(); st != nil {
		return st.Attached()
	}
	return ex.phase == answering || ex.phase == open && ex.w != nil
}

// Delivered implements Reply.
func (ex *Exchange) Delivered() bool {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	if st := ex.stream.Load(); st != nil {
		return st.Delivered()
	}
	return ex.whole
}

// Continue implements Reply.
func (ex *Exchange) Continue(work func()) {
	ex.mu.Lock()
	c := ex.carrier
	ex.mu.Unlock()
	if c == nil || !c.Hand(work) {
		go work()
	}
}

// Refuse implements Reply (H-3, H-4). One member of a batch cannot have a
// status of its own.
func (ex *Exchange) Refuse(r *downstream.Refusal) bool {
	ex.mu.Lock()
	if ex.phase != open || ex.w == nil || ex.batch {
		ex.mu.Unlock()
		if ex.session != nil {
			ex.session.Challenge(r, ex.auth)
		}
		return false
	}
	w, req := ex.w, ex.r
	ex.phase = answering
	ex.mu.Unlock()
	ex.end.opt.Refuse(w, req, r)
	ex.settle(true)
	ex.release()
	return true
}

// startKnownLocked is startStreamLocked for what others rely on that the client can come
// back to: it returns nil, too, when the client left before it learnt the id of any event.
func (ex *Exchange) startKnownLocked() *sessions.Stream {
	if ex.phase == open && ex.w != nil && quiet.Departed(ex.r) {
		ex.w, ex.r = nil, nil
	}
	return ex.startStreamLocked()
}

// startStreamLocked turns the response into a stream, with the lock held. It returns
// nil when that is impossible because the exchange is over. Whether the client is still
// there the stream finds out before it writes.
func (ex *Exchange) startStreamLocked() *sessions.Stream {
	if ex.phase == streaming {
		return ex.stream.Load()
	}
	if ex.phase != open || ex.w == nil {
		return nil
	}
	st, c := ex.end.opt.Streams.Begin(ex.w, ex.r, ex.session.Streams(), ex.of, ex.hold.Account())
	for _, part := range ex.parts {
		st.Answer(part)
	}
	ex.carrier, ex.parts = c, nil
	ex.gathered.Release() // the stream is charged
	ex.phase = streaming
	ex.stream.Store(st)
	ex.notifyLocked()
	return st
}

// Due is called by the janitor when a response takes longer than the commit
// delay (E-6). A held lock means that somebody is just answering.
func (ex *Exchange) Due() (again bool) {
	if !ex.mu.TryLock() {
		return true
	}
	var c *stream.Response
	var st *sessions.Stream
	if ex.phase == open {
		st = ex.startKnownLocked()
		c = ex.carrier
	}
	ex.mu.Unlock()
	if st != nil {
		st.Flush()
		_ = c.Open() // when there was nothing to flush
	}
	return false
}

// release gives back what the exchange held, once, after its end.
func (ex *Exchange) release() {
	ex.commit.Remove()
	if ex.session != nil {
		if st := ex.stream.Load(); st != nil {
			ex.session.Streams().Retire(st, ex.unproven && !ex.session.BoundTo(ex.auth), ex.stored.hasWord())
		}
	}
	ex.hold.Release()
	ex.gathered.Release()
	if ex.stored != nil {
		ex.stored.release()
	}
	ex.leave()
}

// Outlast implements Reply.
func (ex *Exchange) Outlast() (over func()) {
	ex.lasting.Add(1)
	return ex.leave
}

// leave counts the exchange out, unless something outlasts it still.
func (ex *Exchange) leave() {
	if ex.lasting.Add(-1) >= 0 {
		return
	}
	if ex.session != nil {
		ex.session.Done(ex.requests, ex.unproven)
	}
	if ex.place != nil {
		ex.place()
	}
	ex.end.opt.Gate.Exit()
}
