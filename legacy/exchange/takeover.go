package exchange

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/legacy/stream"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/sessions/store"
)

// FoundCall is a call of a session, or its last word, as the store has it.
type FoundCall struct {
	kind    store.Kind
	id      string
	version uint64
	ttl     time.Duration
	record  *callRecord
	passage *session.Passage // as it was found; nil: who has it charges for it
}

// Over says that nobody looks at it any more. It is idempotent, and for a nil call, too.
func (c *FoundCall) Over() {
	if c != nil {
		c.passage.Over()
	}
}

func isFlow(c *FoundCall) bool { return c.kind == store.Flow }

// Waits tells a call from a last word.
func (c *FoundCall) Waits() bool { return c.kind == store.Flow && !c.record.Over }

// Home returns the replica that the call is in. A last word is in none.
func (c *FoundCall) Home() downstream.ReplicaID { return c.record.Home }

// Speaks reports whether it is of the stream with this number.
func (c *FoundCall) Speaks(stream uint64) bool { return c.record.Stream == stream }

// Stream returns the number of its stream, of which there is one call at most.
func (c *FoundCall) Stream() uint64 { return c.record.Stream }

// Is reports whether it is the call that the client gave this id.
func (c *FoundCall) Is(request jsonrpc.ID) bool { return c.Waits() && c.record.Request == request }

// IsOf reports whether the caller may answer and cancel the call.
func (c *FoundCall) IsOf(conv downstream.Conversation, caller downstream.Caller) bool {
	return conv.Owns(caller, c.record.Flow)
}

// IsFor reports whether the caller may fetch what the call says (E-24): it is the one who made it, as far as
// its record knows.
func (c *FoundCall) IsFor(conv downstream.Conversation, caller downstream.Caller) bool {
	return c.record.isFor(conv, caller)
}

func (r *callRecord) isFor(conv downstream.Conversation, caller downstream.Caller) bool {
	if r.Of == "" && !r.Over && !conv.Owns(caller, r.Flow) { // an older bridge's
		return false
	}
	return caller.Resumes(r.Of)
}

// Asks reports whether the call waits for the answer to this question.
func (c *FoundCall) Asks(question jsonrpc.ID) bool {
	return c.Waits() && c.record.asks(question)
}

// asks reports whether a question is among the events.
func (r *callRecord) asks(question jsonrpc.ID) bool {
	return slices.ContainsFunc(r.Events, func(e storedEvent) bool { return e.ID == question })
}

// Meant tells which call of a session is looked for.
type Meant struct {
	Stream uint64 // whose record is the only one to be read; 0: any may be
	Is     func(*FoundCall) bool
	Owed   bool // it is read even when there is no memory for it
}

// Find returns the call of a session that is meant, nil when the store has none; whoever gets one says when it is over. It reads one
// after the other: all together may be larger than the memory. One that has no turn at once, or for which there is no memory, does not
// keep the others from being found. Where it may be the one the error is session.ErrNoTurn, or one of budget.
func Find(s *session.Session, meant Meant) (*FoundCall, error) {
	list, err := meant.among(s)
	if err != nil {
		return nil, err
	}
	if meant.Owed {
		found, _, err := meant.look(s, list, session.Owed)
		return found, err
	}
	found, crowded, short := meant.look(s, list, session.AtOnce)
	if found != nil || len(crowded) == 0 {
		return found, short
	}
	found, crowded, err = meant.look(s, crowded, session.InTurn)
	switch {
	case found != nil || err != nil:
		return found, err
	case len(crowded) > 0:
		return nil, session.ErrNoTurn
	}
	return nil, short
}

// look returns the call that is meant, and where those are that had no turn. Of those for which there is no memory the error tells,
// which comes with no call.
func (m Meant) look(s *session.Session, list []store.Address, haste session.Haste) (found *FoundCall, crowded []store.Address, short error) {
	for i, at := range list {
		r, passage, err := s.Record(at.Kind, at.ID, haste)
		switch {
		case errors.Is(err, store.ErrNotFound): // by now
			continue
		case errors.Is(err, session.ErrNoTurn) && haste == session.AtOnce:
			crowded = append(crowded, at)
			continue
		case errors.Is(err, session.ErrNoTurn): // nor have the others
			return nil, list[i:], short
		case budget.Short(err):
			short = err
			continue
		case err != nil:
			return nil, nil, err
		}
		if c := m.read(s, &r); c != nil {
			c.passage = passage
			return c, nil, nil
		}
		passage.Over()
	}
	return nil, crowded, short
}

// read returns the call of a record, if it is the one.
func (m Meant) read(s *session.Session, r *store.Record) *FoundCall {
	record, err := readCall(r)
	if err != nil {
		s.Report("reading a call", err)
		return nil
	}
	if c := callOf(r, record); (m.Stream == 0 || c.Speaks(m.Stream)) && m.Is(c) {
		return c
	}
	return nil
}

// among returns where it may be.
func (m Meant) among(s *session.Session) (list []store.Address, err error) {
	if m.Stream != 0 {
		id := recordID(m.Stream)
		return []store.Address{{Kind: store.Flow, ID: id}, {Kind: store.LastWord, ID: id}}, nil
	}
	all, err := s.Glance()
	for i := range all {
		if at := all[i].Address; at.Kind == store.Flow || at.Kind == store.LastWord {
			list = append(list, at)
		}
	}
	return list, err
}

func callOf(r *store.Record, record *callRecord) *FoundCall {
	return &FoundCall{kind: r.Kind, id: r.ID, version: r.Version, ttl: r.TTL, record: record}
}

// TakeOver goes on with a call whose replica does not, or makes a last word ready. Of
// all replicas exactly one succeeds; the others' error is ErrGone.
func (e *Endpoint) TakeOver(s *session.Session, caller downstream.Caller, c *FoundCall) error {
	if e.opt.Gate.IsShut() {
		return downstream.ErrStopping
	}
	return s.TakeOver(func() error {
		defer s.Unshelve(c.record.Stream)
		if e.outdated(s, c) {
			s.Conversation().Renew()
		}
		switch {
		case s.Streams().Find(c.record.Stream) != nil:
			return nil // by another request, just now
		case !c.Waits():
			c.speak(s)
			return nil
		}
		return e.goOn(s, caller, c)
	})
}

// outdated reports whether a call is at this replica, too, as it was before another one took it
// over, and this one is yet to learn of that. Two at once would end each other's record.
func (e *Endpoint) outdated(s *session.Session, c *FoundCall) bool {
	return c.Waits() && c.Home() != e.opt.Replica && s.Streams().Find(c.record.Stream) != nil
}

// speak makes a last word ready to be fetched.
func (c *FoundCall) speak(s *session.Session) {
	st := s.Streams().BringBack(c.record.Stream, c.record.Of, c.record.events(), c.record.Last)
	st.Owe()
	st.Seal(nil)
	s.Streams().Retire(st, false, true)
}

func (e *Endpoint) goOn(s *session.Session, caller downstream.Caller, c *FoundCall) error {
	record := c.record
	record.Home, record.Last = e.opt.Replica, record.beyond()
	err := record.written(func(value []byte) error {
		return s.ChangeCalls(store.Change{Kind: store.Flow, ID: c.id, Replaces: c.version, TTL: c.ttl, Value: value})
	})
	if err != nil {
		return err
	}
	ex := &Exchange{end: e, session: s, of: record.Of, unproven: s.IsVisitor(record.Of), accept: web.AcceptJSON | web.AcceptSSE, phase: streaming, requests: 1, left: 1}
	ex.stored = &storedCall{version: c.version + 1, at: time.Now().Round(0), record: *record, back: time.Now(), expires: time.Now().Add(c.ttl), hold: budget.On(s.Account()),
		kept: s.Room().Find(cmp.Or(record.Payer, s.Payer()), record.size(), c.ttl)}
	ex.stored.hold.Charge(record.size()) // it was judged as it was read
	ex.stream.Store(s.Streams().BringBack(record.Stream, record.Of, record.events(), record.Last))
	if !e.start(ex) {
		ex.stored.kept.Release() // it ends with its session, or the process does
		return downstream.ErrStopping
	}
	e.await(ex)
	if err := s.Conversation().Resume(caller, record.Flow, ex); err != nil {
		ex.Leave()
		return err
	}
	return nil
}

// Conclude implements session.Calls. Who had the call before this replica takes what follows for what has been taken over: so it
// is, once more, before it ends.
func (e *Endpoint) Conclude(s *session.Session, call *store.Record, keep func(store.Change) error) error {
	record, err := readCall(call)
	switch {
	case err != nil:
		return err
	case record.Over:
		return session.ErrOver
	}
	change := store.Change{Kind: store.Flow, ID: call.ID, Replaces: call.Version, TTL: max(taken, e.opt.Retention)}
	write := func(r *callRecord) error {
		return r.written(func(value []byte) error {
			change.Value = value
			err := keep(change)
			change.Replaces++
			return err
		})
	}
	if record.Home != e.opt.Replica {
		record.Home = e.opt.Replica
		if err := write(record); err != nil {
			return err
		}
	}
	word := callRecord{V: callRecordVersion, Stream: record.Stream, Of: record.Of, Over: true}
	if st := s.Streams().Find(record.Stream); st != nil {
		if seq, data := st.Response(); data != nil {
			word.Events = []storedEvent{{Seq: seq, Data: data}}
		}
	}
	return write(&word)
}

// Home implements session.Calls.
func (e *Endpoint) Home(call *store.Record) (downstream.ReplicaID, error) {
	record, err := readCall(call)
	switch {
	case err != nil:
		return 0, err
	case record.Over:
		return 0, session.ErrOver
	}
	return record.Home, nil
}

// Due implements session.Calls.
func (e *Endpoint) Due(call *store.Record) (time.Time, error) {
	record, err := readCall(call)
	if err != nil {
		return time.Time{}, err
	}
	return e.opt.Due(record.Flow)
}

// GoOn implements session.Calls.
func (e *Endpoint) GoOn(s *session.Session, caller downstream.Caller, call *store.Record) error {
	record, err := readCall(call)
	if err != nil {
		return err
	}
	return e.TakeOver(s, caller, callOf(call, record))
}

// Fail implements session.Calls.
func (e *Endpoint) Fail(call *store.Record, room *budget.Room, keep func(store.Change) error) error {
	record, err := readCall(call)
	switch {
	case err != nil:
		return err
	case record.Over:
		return session.ErrOver
	}
	word := callRecord{V: callRecordVersion, Stream: record.Stream, Of: record.Of, Over: true, Events: []storedEvent{{Seq: record.beyond() + 1, Data: message.Lapsed(record.Request)}}}
	err = word.written(func(value []byte) error {
		return keep(store.Change{Kind: store.Flow, ID: call.ID, Replaces: call.Version, TTL: e.opt.Retention, Value: value})
	})
	if err == nil {
		kept := room.Find(record.Payer, record.size(), call.TTL)
		kept.Charge(record.Payer, word.size(), e.opt.Retention)
	}
	return err
}

// GiveUp implements session.Calls.
func (e *Endpoint) GiveUp(s *session.Session, caller downstream.Caller, call *store.Record) (tell func(), err error) {
	record, err := readCall(call)
	if err != nil || record.Over {
		return nil, err
	}
	var kept budget.Kept
	if record.Home == e.opt.Replica { // else another replica has counted it
		kept = s.Room().Left(record.Payer, record.size(), call.TTL)
	}
	var server func()
	if c := s.Conversation(); c != nil {
		if server, err = c.GiveUp(caller, record.Flow); err != nil {
			return nil, err
		}
	}
	return func() {
		kept.Release()
		if server != nil {
			server()
		}
	}, nil
}

// Tell answers a GET that polls for a call which waits in the store, and reports whether
// it did: such a call need not come back for that.
func (e *Endpoint) Tell(w http.ResponseWriter, s *session.Session, caller downstream.Caller, id stream.EventID) bool {
	if !s.Shelved(id.Stream) || !s.Streams().Polled() {
		return false
	}
	if s.HasHeard(id.Stream, recordID(id.Stream), &caller, id.Seq) {
		s.Streams().Tell(w, id, nil)
		return true
	}
	found, passage, err := s.Record(store.Flow, recordID(id.Stream), session.InTurn)
	if err != nil {
		return false
	}
	defer passage.Over()
	record, err := readCall(&found)
	if err != nil || !record.isFor(s.Conversation(), caller) || record.Home != e.opt.Replica || len(record.Events) == 0 || id.Seq > record.beyond() {
		return false
	}
	events := record.events()
	if !caller.Unproven {
		s.Told(id.Stream, &found, session.Heard{By: caller.Principal, Version: found.Version, Last: events[len(events)-1].Seq, Beyond: record.beyond()})
	}
	passage.Yield() // the client may be slow
	s.Streams().Tell(w, id, events)
	return true
}
