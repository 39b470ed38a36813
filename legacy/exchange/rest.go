package exchange

import (
	"net/http"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/legacy/stream"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sessions/store"
)

// Calls that wait in the store alone: when they go there (package session decides), and what is
// answered from there.

// Away implements session.Waiting.
func (ex *Exchange) Away(unload time.Duration) (number uint64, away bool) {
	ex.mu.Lock()
	kept, st := ex.kept, ex.stream.Load()
	ex.mu.Unlock()
	if kept == nil || st == nil || st.Attached() {
		return 0, false
	}
	kept.mu.Lock()
	defer kept.mu.Unlock()
	return st.ID(), kept.version > 0 && !kept.over && time.Since(kept.asked) >= unload
}

// Shelve implements session.Waiting.
func (ex *Exchange) Shelve(until time.Time) {
	ex.mu.Lock()
	kept := ex.kept
	ex.mu.Unlock()
	kept.mu.Lock()
	defer kept.mu.Unlock()
	kept.until = until
}

// shelve notes that the call is in the store alone from now on, if that is where it goes.
func (ex *Exchange) shelve(st *sessions.Stream) {
	ex.mu.Lock()
	kept := ex.kept
	ex.mu.Unlock()
	if kept == nil {
		return
	}
	kept.mu.Lock()
	until := kept.until
	kept.mu.Unlock()
	if !until.IsZero() {
		ex.session.Shelve(st.ID(), until)
	}
}

// Home implements session.Calls.
func (e *Endpoint) Home(call *store.Record) (downstream.Seat, error) {
	record, err := readCall(call)
	if err != nil {
		return 0, err
	}
	return record.Home, nil
}

// GoOn implements session.Calls.
func (e *Endpoint) GoOn(s *session.Session, caller downstream.Caller, call *store.Record) error {
	record, err := readCall(call)
	if err != nil {
		return err
	}
	return e.TakeOver(s, caller, callOf(call, record))
}

// Tell answers a GET that polls for a call which waits in the store, and reports whether
// it did: such a call need not come back for that.
func (e *Endpoint) Tell(w http.ResponseWriter, s *session.Session, id stream.EventID) bool {
	if !s.Shelved(id.Stream) || !s.Streams().Polled() {
		return false
	}
	found, err := s.Record(store.Flow, recordID(id.Stream))
	if err != nil {
		return false
	}
	record, err := readCall(&found)
	if err != nil || record.Home != e.opt.Seat || len(record.Events) == 0 || id.Seq > record.beyond() {
		return false
	}
	s.Streams().Tell(w, id, record.events())
	return true
}

// ReadRecord tells the people who run the bridge what a call's record says of it: how many questions
// are open, and its flow, which holds secrets.
func ReadRecord(r *store.Record) (questions int, flow []byte, err error) {
	record, err := readCall(r)
	if err != nil {
		return 0, nil, err
	}
	for i := range record.Events {
		again := func(e keptEvent) bool { return e.ID == record.Events[i].ID }
		if record.Events[i].ID != "" && !slices.ContainsFunc(record.Events[:i], again) {
			questions++
		}
	}
	return questions, record.Flow, nil
}
