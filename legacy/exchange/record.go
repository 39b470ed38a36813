package exchange

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/jsonout"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sessions/store"
)

// callRecord is a call that waits for its client, and the events that the client may
// not have had: the questions that are open. When it is over, its last word takes its
// place, which is one event.
//
// It is written as a line of JSON, and behind it what is long, as it is: the data of each
// event, then the flow. Version 1 had these within the JSON.
type callRecord struct {
	V       int                  `json:"v"`
	Stream  uint64               `json:"stream"`            // number of the stream that the events are of
	Home    downstream.ReplicaID `json:"home,omitempty"`    // the replica that the call is in
	Request jsonrpc.ID           `json:"request,omitempty"` // the client's id of the call
	Of      string               `json:"of,omitempty"`      // the principal of who made it; "": of nobody, or unknown to an older bridge
	Last    uint64               `json:"last,omitempty"`    // no replica before Home has sent an event with a higher number
	Payer   string               `json:"payer,omitempty"`   // in whose share of the store Home counts it; "": in nobody's, or an older bridge's
	Over    bool                 `json:"over,omitempty"`    // what follows is its last word
	Events  []storedEvent        `json:"events,omitempty"`
	Flow    []byte               `json:"flow,omitempty"` // as Conversation.Resume wants it
}

type storedEvent struct {
	ID   jsonrpc.ID `json:"id,omitempty"` // of the question
	Seq  uint64     `json:"seq"`
	Size int        `json:"size,omitempty"` // of Data, where that is behind the JSON
	Data []byte     `json:"data"`
}

// callRecordVersion counts the changes of callRecord that an older bridge could not go
// on from. Members may be added without one.
const callRecordVersion = 2

// inlineVersion is the last one that had everything within the JSON.
const inlineVersion = 1

// write writes the record. It is on the way of every question.
func (r *callRecord) write(o *jsonout.Object) {
	o.Int("v", int64(r.V))
	o.Uint("stream", r.Stream)
	o.Uint("home", uint64(r.Home))
	o.String("request", string(r.Request))
	o.String("of", r.Of)
	o.Uint("last", r.Last)
	o.String("payer", r.Payer)
	o.True("over", r.Over)
	o.List("events", len(r.Events), func(o *jsonout.Object, i int) {
		e := &r.Events[i]
		o.String("id", string(e.ID))
		o.Uint("seq", e.Seq)
		o.Int("size", int64(len(e.Data)))
	})
	o.End()
	o.Behind('\n')
	for i := range r.Events {
		o.Behind(r.Events[i].Data...)
	}
	o.Behind(r.Flow...)
}

// written has the record used as it is kept, in memory that is used again.
func (r *callRecord) written(use func(value []byte) error) error {
	o := jsonout.Begin()
	r.write(o)
	err := use(o.Text())
	if err == nil { // else an engine may still be about to send it
		o.Release()
	}
	return err
}

// recordID names the records of a stream, in whatever process it is.
func recordID(stream uint64) string { return strconv.FormatUint(stream, 10) }

var errUnreadable = errors.New("its record cannot be read")

// readCall reads the record of a call or of a last word.
func readCall(r *store.Record) (*callRecord, error) {
	if r.Err != nil {
		return nil, r.Err
	}
	line, rest, _ := bytes.Cut(r.Value, []byte{'\n'})
	record := new(callRecord)
	if err := json.Unmarshal(line, record); err != nil || record.V < 1 {
		return nil, errUnreadable
	}
	if record.V > callRecordVersion {
		return nil, store.ErrNewer
	}
	if record.V > inlineVersion && !record.split(rest) {
		return nil, errUnreadable
	}
	record.V = callRecordVersion
	return record, nil
}

// split gives the record what is behind its JSON.
func (r *callRecord) split(rest []byte) (ok bool) {
	for i := range r.Events {
		e := &r.Events[i]
		if e.Size < 0 || e.Size > len(rest) {
			return false
		}
		if len(r.Events) == 1 && e.Size == len(rest) { // a last word has nothing beside it, and may be large
			e.Data, rest = rest, nil
		} else {
			e.Data, rest = bytes.Clone(rest[:e.Size]), rest[e.Size:] // it may be there for longer than the flow
		}
		e.Size = 0
	}
	r.Flow = rest
	return true
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
		events[i] = sessions.Event{Seq: e.Seq, Data: e.Data, Question: string(e.ID)}
	}
	return events
}

// asWas returns a call's record as it is now, for when it cannot be changed.
func (r *callRecord) asWas() callRecord {
	was := *r
	was.Events = slices.Clone(r.Events)
	return was
}

// Told is what a call's record says to the people who run the bridge.
type Told struct {
	Over      bool   // it is a last word
	Questions int    // that are open
	Flow      []byte // which holds secrets
}

// ReadRecord reads the record of a call for the people who run the bridge.
func ReadRecord(r *store.Record) (Told, error) {
	record, err := readCall(r)
	if err != nil {
		return Told{}, err
	}
	told := Told{Over: record.Over, Flow: record.Flow}
	for i := range record.Events {
		again := func(e storedEvent) bool { return e.ID == record.Events[i].ID }
		if record.Events[i].ID != "" && !slices.ContainsFunc(record.Events[:i], again) {
			told.Questions++
		}
	}
	return told, nil
}
