package legacy

import (
	"errors"
	"io"
	"net/http"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/exchange"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/observe"
)

// sender is who a POST is of, as far as its headers tell, and what it holds.
type sender struct {
	session *session.Session // nil without one
	visits  *session.Session // bound to other credentials, where it may call all the same; nil: none
	caller  downstream.Caller
	named   session.Naming
	refusal *downstream.Refusal // the server's, for want of which there is no session; nil: none
	hold    budget.Hold         // of the body; moves to the exchange if there is one
	lent    bool                // the body was not judged
	place   func()              // gives back the place of its requests; nil: none; moves to the exchange, too
	entered *session.Session    // stays in memory for the request; nil: none does
}

// find finds the session, which stays in memory until release.
func (s *sender) find(r *http.Request, set *session.Set) {
	for {
		s.session, s.caller, s.named, s.refusal = set.Find(r)
		if s.enter() {
			return
		}
	}
}

// enter has the session stay in memory until release, and returns false when it has left that: then it is to be found anew.
func (s *sender) enter() bool {
	if s.session == nil || !s.session.Enter() {
		return s.session == nil
	}
	s.stays(s.session)
	return true
}

// stays notes a session that was entered, in place of the one before.
func (s *sender) stays(entered *session.Session) {
	if s.entered != nil {
		s.entered.Exit()
	}
	s.entered = entered
}

// listens is said just before something listens to the session, which is what keeps it in memory from then on: the request would
// keep one that ends, too. What was just used does not leave before that.
func (s *sender) listens() {
	s.stays(nil)
}

// visit has a message be of somebody whom the session is not bound to, if they may send it.
func (s *sender) visit(r *http.Request, set *session.Set, msg *jsonrpc.Message) (*session.Session, downstream.Caller) {
	visits, caller := set.Rotated(r, msg)
	s.visits = visits
	s.stays(visits)
	return visits, caller
}

// prove has a request count as its session's owner's that brings a newer token of his, once the
// server has said that it knows the token.
func (s *sender) prove(r *http.Request, set *session.Set) bool {
	if s.named != session.Unknown {
		return false
	}
	found, caller := set.Prove(r)
	if found == nil {
		return false
	}
	s.session, s.visits, s.caller, s.named = found, nil, caller, session.Known
	s.stays(found)
	return true
}

// repeats reports whether a call may be one that its session's owner made before, and was told to make again.
func (s *sender) repeats(r *http.Request, msg *jsonrpc.Message) bool {
	return s.visits != nil && msg.Kind() == jsonrpc.Request && (s.visits.Conversation().Awaits(*msg) || s.visits.WaitsAt(msg, r.Header) != 0)
}

// hand gives an exchange the place that its requests take.
func (s *sender) hand(ex *exchange.Exchange) {
	ex.Occupy(s.place)
	s.place = nil
}

// release gives back what has moved nowhere.
func (s *sender) release() {
	s.hold.Release()
	if s.place != nil {
		s.place()
	}
	s.stays(nil)
}

// charge charges for a request and its body of this length, negative: unknown. A small
// one of a session may be the answer that ends what the session holds, so it is lent.
func (s *sender) charge(head http.Header, length int64) error {
	size := requestCost + web.HeadCost(head) + int(max(length, 0))
	if s.lent = s.session != nil && length >= 0 && size <= requestCost+unproven; s.lent {
		return s.hold.Borrow(size)
	}
	return s.hold.Grow(size)
}

// body reads the message into a buffer of just its size, since the parsed
// message and the flow it starts go on pointing into it.
func (a *admission) body(w http.ResponseWriter, r *http.Request, from *sender) ([]byte, bool) {
	if !web.IsPlain(r.Header) {
		w.Header()["Accept-Encoding"] = []string{"identity"} // what would be taken instead
		web.WriteError(w, http.StatusUnsupportedMediaType, "", jsonrpc.CodeInvalidRequest, "the body must not be compressed")
		return nil, false
	}
	if r.ContentLength > a.opt.MaxBody {
		a.guard.Refused(observe.TooLarge)
		web.WriteTooLarge(w, a.opt.MaxBody)
		return nil, false
	}
	var body []byte
	err := from.charge(r.Header, r.ContentLength)
	switch {
	case err != nil:
	case r.ContentLength >= 0:
		body, err = readExactly(r.Body, int(r.ContentLength))
	default:
		body, err = readMetered(http.MaxBytesReader(w, r.Body, a.opt.MaxBody), &from.hold)
	}
	var tooLarge *http.MaxBytesError
	switch {
	case budget.Short(err):
		a.guard.Refused(observe.ShortOfMemory)
		a.writeShort(w, r, from.session, "", err)
	case errors.As(err, &tooLarge):
		a.guard.Refused(observe.TooLarge)
		web.WriteTooLarge(w, a.opt.MaxBody)
	case err != nil:
		a.guard.Refused(observe.SlowBody)
		web.WriteError(w, http.StatusBadRequest, "", jsonrpc.CodeParse, "request body ended early")
	default:
		return body, true
	}
	return nil, false
}

// requestCost is what a request is charged for besides its body and a large head, in bytes.
const requestCost = 8 << 10

// handedOnCost is what a request is charged for besides that while it is at a server as it is,
// in bytes: a connection with its goroutines and buffers, and TLS, a buffer between the two, and the
// stack of who goes on to wait here, of HTTP/2 a goroutine that nothing else is charged for.
// Towards another replica the window of a response (replica) takes the place of the connection.
const handedOnCost = 80 << 10

// unproven is how much is set aside for a body before any of it has arrived.
const unproven = 64 << 10

// readExactly reads n bytes. A large size must first be proven by sending the
// beginning: a header alone must not cost us megabytes.
func readExactly(r io.Reader, n int) ([]byte, error) {
	body := make([]byte, min(n, unproven))
	if _, err := io.ReadFull(r, body); err != nil || n <= unproven {
		return body, err
	}
	body = append(make([]byte, 0, n), body...)
	_, err := io.ReadFull(r, body[unproven:n])
	return body[:n], err
}

// meter charges a body of unknown length while it is read.
type meter struct {
	io.Reader
	hold budget.Hold
}

// readMetered reads to the end, and charges what it reads to hold.
func readMetered(r io.Reader, hold *budget.Hold) ([]byte, error) {
	m := &meter{r, hold.Move()}
	body, err := io.ReadAll(m)
	*hold = m.hold.Move()
	return body, err
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if short := m.hold.Grow(n); short != nil {
		return 0, short
	}
	return n, err
}

// accountOf returns what a request is charged to.
func (a *admission) accountOf(s *session.Session, r *http.Request) *budget.Account {
	switch {
	case a.opt.Memory == nil:
		return nil
	case s != nil:
		return s.Account()
	}
	return a.opt.Memory.Guest(a.sessions.Tenant(r))
}

// handsOn charges for a request that is about to be handed on, or refuses it. What may end
// something is lent.
func (a *admission) handsOn(w http.ResponseWriter, r *http.Request, id jsonrpc.ID, lend bool) (hold budget.Hold, refused bool) {
	hold = budget.On(a.accountOf(nil, r))
	charge := hold.Grow
	if lend {
		charge = hold.Borrow
	}
	err := charge(handedOnCost)
	if err != nil {
		a.guard.Refused(observe.ShortOfMemory)
		a.writeShort(w, r, nil, id, err)
	}
	return hold, err != nil
}

// owes refuses a request that was lent memory for its body, when its session holds too
// much.
func (a *admission) owes(w http.ResponseWriter, r *http.Request, from *sender, id jsonrpc.ID) bool {
	if !from.lent {
		return false
	}
	err := from.hold.Judge()
	if err != nil {
		a.guard.Refused(observe.ShortOfMemory)
		a.writeShort(w, r, from.session, id, err)
	}
	return err != nil
}

// writeShort refuses a request for want of memory: 429 to who holds too much, 503 when
// nobody else could be served either. s is nil without a session.
func (a *admission) writeShort(w http.ResponseWriter, r *http.Request, s *session.Session, id jsonrpc.ID, err error) {
	status, again := http.StatusServiceUnavailable, fullAgain
	if errors.Is(err, budget.ErrShare) {
		status, again = http.StatusTooManyRequests, busyAgain
	}
	line := a.notices.short.Warn()
	if a.opt.Memory != nil { // else somebody else is short of it
		line = line.Int64("used", a.opt.Memory.Used()).Int64("limit", a.opt.Memory.Limit())
	}
	if s != nil {
		line = line.Str(logfield.SessionID, logfield.Short(s.ID()))
	}
	line.Msg("short of memory (limits.memory); a request was refused")
	w.Header().Set("Retry-After", again)
	if r.ContentLength < 0 || r.ContentLength > unproven {
		w.Header().Set("Connection", "close") // nobody wants to read the rest
	}
	web.WriteError(w, status, id, jsonrpc.CodeInternal, err.Error())
}
