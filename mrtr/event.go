package mrtr

import (
	"fmt"
	"time"
)

// Event is something that happened to a flow. Build one with the functions
// below; the zero Event is not valid.
type Event struct {
	kind    eventKind
	key     string
	payload []byte
	typ     string // raw resultType of a result
	err     error
}

type eventKind int

const (
	started eventKind = iota + 1
	result
	taskStatus
	input
	noInput
	timer
	cancelled
	failed
)

// Started begins the flow: credentials and capabilities are ready (D-T1).
func Started() Event { return Event{kind: started} }

// Result is the upstream's result of the round in flight. typ is its raw
// member resultType, empty when there is none, which who parsed the result knows:
// looking for it behind 64 KiB of text takes 2.5 µs.
func Result(raw []byte, typ string) Event {
	return Event{kind: result, payload: raw, typ: typ}
}

// TaskStatus is the server's answer to tasks/get.
func TaskStatus(raw []byte) Event { return Event{kind: taskStatus, payload: raw} }

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

// Timer says that the wait of an earlier [Wait] is over (D-T15).
func Timer() Event { return Event{kind: timer} }

// Cancelled is the client's notifications/cancelled, or the end of its session
// (D-T13, D-T19).
func Cancelled() Event { return Event{kind: cancelled} }

// Failed ends the flow with err: an upstream error, a deadline, an eviction.
func Failed(err error) Event { return Event{kind: failed, err: err} }

// Verb is what the driver does next.
type Verb int

// The verbs. After Deliver, Fail and Stop the flow is over.
const (
	Nothing Verb = iota
	Send         // build the round from the flow and send it (D.4)
	Ask          // put Action.Ask to the client
	Wait         // give a Timer event after Action.For
	Poll         // give a Timer event after Action.For, and put Action.Ask to the client (G-3, G-6)
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
	For       time.Duration // of Wait and Poll, before jitter
	Key       string        // of Update
	Result    []byte        // of Deliver, when it is not the upstream's whole result
	Err       error         // of Fail
	Completed []string      // elicitation ids whose URL interaction is over (C-32)
	Task      *Task         // still runs and is no longer wanted: cancel it (G-12, G-13)
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
