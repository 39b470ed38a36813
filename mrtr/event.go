package mrtr

import (
	"fmt"
	"time"
)

// Event is something that happened to a flow. Build one with the functions
// below; the zero Event is not valid.
type Event struct {
	kind    eventKind
	flag    bool   // reachable, ask again, or sent again
	key     string // of an input; an elicitation id
	payload []byte
	typ     string // raw resultType of a result; a question's id
	err     error
	after   time.Duration
	home    *Address
}

type eventKind int

const (
	started eventKind = iota + 1
	result
	taskStatus
	unseen
	updated
	input
	noInput
	unusable
	asked
	housed
	announced
	noted
	tick
	unsent
	busy
	short
	lost
	cancelled
	failed
)

var eventNames = [...]string{
	started: "started", result: "result", taskStatus: "task status", unseen: "unseen", updated: "updated", input: "input", noInput: "no input",
	unusable: "unusable", asked: "asked", housed: "housed", announced: "announced", noted: "noted", tick: "tick", unsent: "unsent", busy: "busy", short: "short",
	lost: "lost", cancelled: "cancelled", failed: "failed",
}

// String returns the name of the event's kind.
func (ev Event) String() string { return eventNames[ev.kind] }

// Started begins the flow: credentials and capabilities are ready (D-T1).
func Started() Event { return Event{kind: started} }

// Result is the upstream's result of the round in flight. typ is its raw
// member resultType, empty when there is none, which who parsed the result knows:
// looking for it behind 64 KiB of text takes 2.5 µs.
func Result(raw []byte, typ string) Event {
	return Event{kind: result, payload: raw, typ: typ}
}

// Within bounds the time that the questions of a Result may wait for answers, for somebody who knows that
// the client waits no longer. 0: as ever.
func (ev Event) Within(patience time.Duration) Event {
	ev.after = patience
	return ev
}

// TaskStatus is the server's answer to tasks/get.
func TaskStatus(raw []byte) Event { return Event{kind: taskStatus, payload: raw} }

// Unseen says that the tasks/get in flight failed with err, which ends the flow.
func Unseen(err error) Event { return Event{kind: unseen, err: err} }

// Updated says that the task has the answer under key, or what its server says against that. again says that the
// answer was sent before, and may have been taken then.
func Updated(key string, refused error, again bool) Event {
	return Event{kind: updated, key: key, err: refused, flag: again}
}

// Answered is the client's well-formed answer to the input request under key,
// as the bare input response that goes upstream (C.9).
func Answered(key string, response []byte) Event {
	return Event{kind: input, key: key, payload: response}
}

// Unanswered says that the input request under key will get no usable answer:
// a client error, a malformed result, a time-out, or a request that the
// client's version cannot express (C.9, F.3).
func Unanswered(key, reason string) Event {
	return Event{kind: noInput, key: key, err: &Abort{Key: key, Reason: reason}}
}

// Unusable says that the client's answer to the input request under key breaks a
// rule. again says that the rule is one that the question could not express: then
// it is asked once more (C-26).
func Unusable(key, reason string, again bool) Event {
	return Event{kind: unusable, key: key, flag: again, err: &Abort{Key: key, Reason: reason}}
}

// Asked says under which id the input request under key goes to the client, as a raw
// token, and what elicitationId it carries, if any. It comes before the question
// leaves, so that an answer always finds it.
func Asked(key, serverRequestID, elicitationID string) Event {
	return Event{kind: asked, key: key, typ: serverRequestID, payload: []byte(elicitationID)}
}

// Housed says where the call's messages go from now on.
func Housed(home Address) Event { return Event{kind: housed, home: &home} }

// Announced is the word of a server, as some say it, that a URL interaction is over (I-11).
func Announced(elicitationID string) Event { return Event{kind: announced, key: elicitationID} }

// Noted says what the client is to read while it waits: now, and in every heartbeat
// until the next round.
func Noted(words string) Event { return Event{kind: noted, key: words} }

// Tick says that time has passed, at the latest when [Clock.Next] came (D-T15).
// reachable tells whether the client can get what is sent; it counts from
// Clock.Look on. One tick does one thing: it is to be repeated until it does Nothing.
func Tick(reachable bool) Event { return Event{kind: tick, flag: reachable} }

// Unsent says that the round in flight failed and provably never left (D-15).
func Unsent(err error) Event { return Event{kind: unsent, err: err} }

// Busy says that the server, or the one that signs in to it, turned the round in flight away and asks for
// this much patience; 0: it does not say how much.
func Busy(err error, after time.Duration) Event { return Event{kind: busy, err: err, after: after} }

// Short says that there is no memory to send the round in flight with.
func Short(err error) Event { return Event{kind: short, err: err} }

// Lost says that the request in flight, if there is one, failed and may have reached
// the server, but does no more when it is sent twice than when it is sent once (D-15). Another
// tasks/get is due at once, and what was recalled is asked.
func Lost(err error) Event { return Event{kind: lost, err: err} }

// Cancelled is the client's notifications/cancelled, or the end of its session
// (D-T13, D-T19).
func Cancelled() Event { return Event{kind: cancelled} }

// Failed ends the flow with err: an upstream error, a deadline, an eviction.
func Failed(err error) Event { return Event{kind: failed, err: err} }

// Size is how many bytes a peer has said with the event.
func (ev *Event) Size() int { return len(ev.payload) }

// Look returns what a tasks/get that came to its end while nobody waits is to whoever comes: what the
// server said of the task, or nothing, so that it is asked anew. ok is false for other events.
func (ev Event) Look() (later Event, ok bool) {
	if ev.kind == unseen {
		return Lost(ev.err), true
	}
	return ev, ev.kind == taskStatus
}

// Settles reports whether the event is what became of a question: an answer, or none.
func (ev *Event) Settles() bool {
	return ev.kind == input || ev.kind == noInput || ev.kind == unusable
}

// Verb is what the driver does next.
type Verb int

// The verbs. After Deliver, Fail and Stop the flow is over.
const (
	Nothing Verb = iota
	Tell         // only what the other fields say
	Send         // build the round from the flow and send it (D.4)
	Ask          // put Action.Ask to the client
	Wait         // nothing, until Clock.Due
	Poll         // nothing, until Clock.Due, and put Action.Ask to the client (G-3, G-6)
	Fetch        // send tasks/get
	Update       // send tasks/update for Action.Key, and put Action.Ask to the client
	Deliver      // translate the result and answer the client
	Fail         // answer the client with Action.Err
	Stop         // end the exchange without an answer
)

// Action is what a step wants done.
type Action struct {
	Do        Verb
	Ask       []*Input      // to be asked now
	Withdraw  []*Input      // asked, and no longer wanted: cancel them (C-35)
	Ignored   []*Input      // those of Withdraw that the client let time out (C.9)
	For       time.Duration // of Wait and Poll, before it is spread
	Key       string        // of Update
	Result    []byte        // of Deliver, when it is not the upstream's whole result
	Err       error         // of Fail
	Completed []string      // elicitation ids whose URL interaction is over (C-32)
	Say       string        // tell the client by progress Count that the call is alive; empty: do not
	Count     float64
	Task      *Task // still runs and is no longer wanted: cancel it (G-12, G-13)
}

// Abort ends a flow because an input request could not be satisfied (C-34).
type Abort struct {
	Key        string // of the input request; empty when no single one is at fault
	Method     string // of the input request
	Reason     string // for a person and a model
	Undeclared string // the capability that was needed and not declared; mostly empty
	Rule       string // that the server broke, for the log; empty when it broke none
	Unasked    bool   // the client's revision has no words for the question
}

// Error returns the reason.
func (a *Abort) Error() string { return a.Reason }

// LimitReached ends a flow that ran into one of its bounds (D-T17).
type LimitReached struct {
	Limit string // name of the setting, or words for a fixed limit
	Value any
}

// Error names the limit and its value.
func (l *LimitReached) Error() string {
	return fmt.Sprintf("the call was ended by the bridge: %s is limited to %v", l.Limit, l.Value)
}
