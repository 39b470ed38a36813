package legacy

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sessions/store"
)

// keptCall is what an exchange knows of its record in the store.
type keptCall struct {
	mu      sync.Mutex // one save at a time
	version uint64     // of the record in the store
	n       uint64     // of the newest flow
	over    bool       // nothing is kept any more
	record  callRecord
}

// callRecord is a call that waits for its client, and the events that the client may
// not have had: the questions that are open. The events of a last word are one.
type callRecord struct {
	V       int             `json:"v"`
	Stream  uint64          `json:"stream"`            // number of the stream that the events are of
	Home    downstream.Seat `json:"home,omitempty"`    // the replica that the call is in
	Request jsonrpc.ID      `json:"request,omitempty"` // the client's id of the call
	Last    uint64          `json:"last,omitempty"`    // no replica before Home has sent an event with a higher number
	Events  []keptEvent     `json:"events,omitempty"`
	Flow    []byte          `json:"flow,omitempty"` // as Conversation.Resume wants it
}

type keptEvent struct {
	ID   jsonrpc.ID `json:"id,omitempty"` // of the question
	Seq  uint64     `json:"seq"`
	Data []byte     `json:"data"`
}

// callRecordVersion counts the changes of callRecord that an older bridge could not go
// on from. Members may be added without one.
const callRecordVersion = 1

// How long an answer, and the end of a call, wait at most for a store that cannot be reached.
const (
	answerPatience   = 20 * time.Second
	lastWordPatience = 2 * time.Second
)

// Safe implements Reply. Members of a batch end with the process.
func (ex *exchange) Safe() downstream.Safe {
	if ex.session == nil || ex.session.kept == nil || ex.batch || !ex.Interactive() {
		return nil
	}
	return ex
}

// Keep implements downstream.Safe.
func (ex *exchange) Keep(k downstream.Kept) error {
	ex.mu.Lock()
	st := ex.startStreamLocked()
	if ex.kept == nil && st != nil {
		ex.kept = new(keptCall)
	}
	kept := ex.kept
	ex.mu.Unlock()
	if st == nil {
		return nil // it is over, or its client left before it could come back
	}
	var text []byte
	if k.Message != nil {
		text = message.TextOf(k.Message)
	}
	if err := kept.save(ex, st, &k, text); err != nil || text == nil {
		return err
	}
	st.Queue(text)
	st.Flush()
	if ex.http.gate.IsShut() { // its client, which can come back by now, does so to another process
		return downstream.ErrGone
	}
	return nil
}

// save brings the record up to date. text is the event that is to follow, nil for none.
func (kc *keptCall) save(ex *exchange, st *sessions.Stream, k *downstream.Kept, text []byte) error {
	kc.mu.Lock()
	defer kc.mu.Unlock()
	if kc.over {
		return downstream.ErrGone
	}
	r := &kc.record
	r.V, r.Stream, r.Home, r.Request = callRecordVersion, st.ID(), ex.http.keeper.seat, k.Request
	if k.N >= kc.n {
		kc.n, r.Flow = k.N, k.Record
		r.Events = slices.DeleteFunc(r.Events, func(e keptEvent) bool { return !slices.Contains(k.Open, e.ID) })
	}
	if text != nil {
		r.Events = append(r.Events, keptEvent{ID: k.Message.ID, Seq: st.Last() + 1, Data: text})
	}
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	patience := k.TTL // a question may wait as long as its call
	if text == nil {
		patience = answerPatience
	}
	err = kc.commit(ex, patience, store.Change{TTL: k.TTL, Value: value})
	if err != nil && text == nil && ex.http.keeper.shared {
		// Another replica may have taken this one for dead: an answer that is not kept
		// must not be used here.
		ex.http.keeper.report("keeping an answer", err)
		return downstream.ErrGone
	}
	return err
}

// commit replaces the call's record, and makes other changes with it. While the store
// cannot be reached it waits, if it is to. The error is ErrGone when another replica has
// the call.
func (kc *keptCall) commit(ex *exchange, patience time.Duration, record store.Change, more ...store.Change) error {
	k := ex.http.keeper
	record.Kind, record.ID = store.Flow, recordID(kc.record.Stream)
	unsure := false // an earlier try may have made the change
	for deadline := time.Now().Add(min(patience, k.http.opt.StoreWait)); ; {
		record.Replaces = kc.version
		err := k.change(ex.session, append(more, record)...)
		switch {
		case err == nil:
			kc.version++
			return nil
		case errors.Is(err, downstream.ErrGone):
			if err := kc.reclaim(ex, unsure && record.Delete); err != nil || unsure && record.Delete {
				return err
			}
		case time.Now().After(deadline):
			return err
		default:
			unsure = true
			k.pause()
		}
	}
}

// reclaim learns the version of a record that is the call's own, though it is not the
// expected one: a change was made, and the store could not say so any more. gone: if it is
// not there, that is right.
func (kc *keptCall) reclaim(ex *exchange, gone bool) error {
	id := recordID(kc.record.Stream)
	found, record, err := ex.http.keeper.findCall(ex.session, func(kind store.Kind, r *callRecord) bool {
		return kind == store.Flow && recordID(r.Stream) == id
	})
	switch {
	case err != nil:
		return err
	case record == nil && gone:
		return nil
	case record == nil || record.Home != ex.http.keeper.seat || found.Version <= kc.version:
		return downstream.ErrGone
	}
	kc.version = found.Version
	return nil
}

// recordID names the records of a stream, in whatever process it is.
func recordID(stream uint64) string { return strconv.FormatUint(stream, 10) }

// change changes records of a session's calls. The error is ErrGone when another replica
// has changed one.
func (k *keeper) change(s *session, changes ...store.Change) error {
	err := k.do(func(ctx context.Context) error { return k.store.Commit(ctx, k.name(s.rec.ID), changes...) })
	if _, conflict := errors.AsType[*store.ConflictError](err); conflict {
		return downstream.ErrGone
	}
	return err
}

// keepLastWord keeps the response of a call that was kept, until its retention ends, and
// removes the call's record; without a response it only does that. It returns false when
// another replica goes on with the call: then there is nothing to say here.
func (ex *exchange) keepLastWord(msg *downstream.Message) bool {
	ex.mu.Lock()
	kept, over := ex.kept, ex.phase >= answering
	ex.mu.Unlock()
	if kept == nil || over {
		return true
	}
	kept.mu.Lock()
	defer kept.mu.Unlock()
	before := kept.over
	kept.over = true
	if before || kept.version == 0 {
		return true
	}
	st := ex.stream.Load()
	id := recordID(st.ID())
	var changes []store.Change
	if msg != nil {
		value, err := json.Marshal(&callRecord{V: callRecordVersion, Stream: st.ID(), Events: []keptEvent{{Seq: st.Last() + 1, Data: message.OwnText(msg)}}})
		if err == nil {
			changes = append(changes, store.Change{Kind: store.LastWord, ID: id, Replaces: store.Any, TTL: ex.http.opt.Retention, Value: value})
		}
	}
	err := kept.commit(ex, lastWordPatience, store.Change{Delete: true}, changes...)
	if errors.Is(err, downstream.ErrGone) {
		return false
	}
	ex.http.keeper.report("keeping the last word of a call", err)
	return true
}

// Drop implements downstream.Safe.
func (ex *exchange) Drop() { ex.keepLastWord(nil) }

// Leave implements downstream.Safe. The stream is forgotten before it ends: whoever comes
// back for it looks elsewhere.
func (ex *exchange) Leave() {
	if st := ex.stream.Load(); st != nil {
		ex.session.streams.Forget(st)
	}
	ex.complete(nil)
}

// readCall reads the record of a call or of a last word.
func readCall(r *store.Record) (*callRecord, error) {
	if r.Err != nil {
		return nil, r.Err
	}
	record := new(callRecord)
	if err := json.Unmarshal(r.Value, record); err != nil || record.V < 1 {
		return nil, errors.New("its record cannot be read")
	}
	if record.V > callRecordVersion {
		return nil, store.ErrNewer
	}
	return record, nil
}

// takeOver goes on with a call whose replica does not, or makes a last word ready. Of
// all replicas exactly one succeeds; the others' error is ErrGone.
func (k *keeper) takeOver(s *session, caller downstream.Caller, r *store.Record, record *callRecord) error {
	if k.http.gate.IsShut() {
		return downstream.ErrStopping
	}
	s.kept.takeover.Lock()
	defer s.kept.takeover.Unlock()
	if s.streams.Find(record.Stream) != nil {
		return nil // by another request, just now
	}
	if r.Kind == store.LastWord {
		st := s.streams.BringBack(record.Stream, record.events(), record.Last)
		st.Seal(nil)
		s.streams.Retire(st)
		return nil
	}
	record.Home, record.Last = k.seat, record.beyond()
	value, err := json.Marshal(record)
	if err != nil {
		return err
	}
	if err := k.change(s, store.Change{Kind: store.Flow, ID: r.ID, Replaces: r.Version, TTL: r.TTL, Value: value}); err != nil {
		return err
	}
	ex := &exchange{http: k.http, session: s, accept: web.AcceptJSON | web.AcceptSSE, phase: streaming, requests: 1, left: 1}
	ex.kept = &keptCall{version: r.Version + 1, record: *record}
	ex.stream.Store(s.streams.BringBack(record.Stream, record.events(), record.Last))
	if k.http.start(ex) == nil {
		return downstream.ErrStopping
	}
	if err := s.conv.Resume(caller, record.Flow, ex); err != nil {
		ex.Leave()
		return err
	}
	return nil
}

// beyond returns a number that no event has had that was sent so far. Progress is not
// kept, so nobody knows how many there were; that it was less than four billion is certain.
func (r *callRecord) beyond() uint64 {
	last := r.Last
	for _, e := range r.Events {
		last = max(last, e.Seq)
	}
	return (last>>32 + 1) << 32
}

func (r *callRecord) events() []sessions.Event {
	events := make([]sessions.Event, len(r.Events))
	for i, e := range r.Events {
		events[i] = sessions.Event{Seq: e.Seq, Data: e.Data}
	}
	return events
}
