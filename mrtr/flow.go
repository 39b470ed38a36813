package mrtr

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// State is where a flow stands (D.2).
type State string

// The states of a flow. In Gathering, Pausing and the two ends nothing is in
// flight upstream (D-I15); in Sending exactly one request is (D-I9).
const (
	Admitted  State = ""          // validated, nothing sent
	Sending   State = "sending"   // one upstream request in flight
	Gathering State = "gathering" // server requests wait for the client
	Pausing   State = "pausing"   // a back-off runs
	Polling   State = "polling"   // the server made a task of it (section G)
	Done      State = "done"      // answered, with a result or an error
	Silent    State = "silent"    // ended without an answer: cancelled or session gone
)

// Flow is everything there is to remember of one client request between two events:
// what was asked and by whom, how far it is, what the client was told and asked,
// and what is due when. It is data and nothing else, so another process can go on
// with it ([Flow.Encode], [Decode]). Only [Flow.Step], [Flow.Count], [Flow.Recall] and
// [Flow.Judge] change it once it has started.
//
// Two flows share nothing but their Limits, even for the same tool and arguments
// (D-I8).
type Flow struct {
	// Who asked for what. Set before the first step.
	ID           jsonrpc.ID      `json:"id"` // of the client's request, which its response carries
	Method       string          `json:"method"`
	Params       json.RawMessage `json:"params,omitempty"`       // the same in all rounds (D-I2)
	Principal    string          `json:"principal,omitempty"`    // who made the request (H-6)
	Header       []byte          `json:"header,omitempty"`       // what else the server is told of who that is, as lines (H-2); of a flow that waits
	Capabilities json.RawMessage `json:"capabilities,omitempty"` // declared upstream in round 0, kept for all rounds (D-I12)
	Level        string          `json:"level,omitempty"`        // of log messages, as told upstream; empty: none (C-7)
	Home         Address         `json:"home,omitzero"`
	Limits       *Limits         `json:"limits,omitempty"` // shared by many flows and never changed; nil: the defaults

	ListsAsk      bool `json:"listsAsk,omitempty"`      // lists may ask, too (I-4)
	TasksDeclared bool `json:"tasksDeclared,omitempty"` // the server may answer with a task (G-1)
	Repeatable    bool `json:"repeatable,omitempty"`    // a round may be sent twice (D-15), as was known when the flow was kept

	// How far it is.
	State        State           `json:"state,omitempty"`
	Resent       bool            `json:"resent,omitempty"`    // a request was sent twice, which happens once (D-15)
	Round        int             `json:"round,omitempty"`     // 0 is the first request, n the n-th retry
	StateOnly    int             `json:"stateOnly,omitempty"` // state-only rounds so far
	RequestState json.RawMessage `json:"requestState,omitempty"`
	Inputs       []Input         `json:"inputs,omitempty"` // of the latest round
	Hurry        time.Duration   `json:"hurry,omitempty"`  // how long these may wait for answers, if that is less than Limits say; else 0
	URLs         []URLMemory     `json:"urls,omitempty"`
	Task         *Task           `json:"task,omitempty"` // while Polling
	Outage       Outage          `json:"outage,omitzero"`
	Note         string          `json:"note,omitempty"` // what heartbeats say instead of their usual words

	Clock    Clock    `json:"clock,omitzero"`
	Progress Progress `json:"progress,omitzero"`
}

// Address is where a call's messages go: the stream of a session. The zero Address
// is nowhere that another process could find.
type Address struct {
	Session string `json:"session,omitempty"` // the whole id, which is a credential
	Stream  uint64 `json:"stream,omitempty"`
}

// Outage is a round that could not be sent and is tried again (D-15).
type Outage struct {
	Tries int       `json:"tries,omitempty"` // so far, of this round
	Until time.Time `json:"until,omitzero"`  // no longer than that; zero: there is none
}

// Input is an input request of the latest round and what became of it.
type Input struct {
	InputRequest
	ServerRequestID string          `json:"serverRequestId,omitempty"` // raw token of the question (event Asked)
	ElicitationID   string          `json:"elicitationId,omitempty"`   // URL mode only (C-27)
	Asked           bool            `json:"asked,omitempty"`
	AskedAgain      bool            `json:"askedAgain,omitempty"` // after an unusable answer, once (C-26)
	Announced       bool            `json:"announced,omitempty"`  // the server said that the URL interaction is over (I-11)
	judged          bool            // by Judge; it is not kept
	Response        json.RawMessage `json:"response,omitempty"` // bare input response; nil until answered
}

// URLMemory is a URL interaction that the user consented to. Accepting means
// consent to open, not completion, so the server may ask again (C-30, C-31).
type URLMemory struct {
	URL           string `json:"url"`
	Message       string `json:"message"`
	ElicitationID string `json:"elicitationId"`
	Repeats       int    `json:"repeats"`
	Announced     bool   `json:"announced,omitempty"` // as of Input
}

// Over reports whether the flow has ended; every later event is dropped (D-T21).
func (f *Flow) Over() bool { return f.State == Done || f.State == Silent }

// Waits reports whether the flow has begun and no round of it is in flight.
func (f *Flow) Waits() bool { return f.State == Gathering || f.State == Pausing || f.State == Polling }

// Owes reports whether the client has given an answer, which is not to be lost for want of anything of the bridge's own.
func (f *Flow) Owes() bool {
	return f.Round > 0 || slices.ContainsFunc(f.Inputs, func(in Input) bool { return in.Response != nil })
}

// InputResponses returns the inputResponses of the next round, or nil when the
// latest one asked nothing. Only this round's answers are in it (D-I6), under
// literally the keys that the server gave (D-I7).
func (f *Flow) InputResponses() []byte {
	if len(f.Inputs) == 0 {
		return nil
	}
	out := []byte{'{'}
	for i := range f.Inputs {
		if i > 0 {
			out = append(out, ',')
		}
		out = rawjson.AppendQuote(out, f.Inputs[i].Key)
		out = append(out, ':')
		out = append(out, f.Inputs[i].Response...)
	}
	return append(out, '}')
}

// Outstanding returns the inputs that were asked and not answered.
func (f *Flow) Outstanding() []*Input {
	var open []*Input
	for i := range f.Inputs {
		if in := &f.Inputs[i]; in.Asked && in.Response == nil {
			open = append(open, in)
		}
	}
	return open
}

// Input returns the latest round's entry under key, or nil.
func (f *Flow) Input(key string) *Input {
	for i := range f.Inputs {
		if f.Inputs[i].Key == key {
			return &f.Inputs[i]
		}
	}
	return nil
}

// Judge has judge look at the inputs that have yet to be asked, and stops at the first error. What it
// has judged is not looked at again: of many inputs, which may be large, each is asked when one before it
// was answered.
func (f *Flow) Judge(judge func(*Input) (judged bool, err error)) (err error) {
	for i := range f.Inputs {
		in := &f.Inputs[i]
		if in.judged || in.Response != nil || in.ServerRequestID != "" {
			continue
		}
		if in.judged, err = judge(in); err != nil {
			return err
		}
	}
	return nil
}

func clone(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append(make([]byte, 0, len(b)), b...)
}

// unanswered is the response that stands for none; "" where there is none (C-34).
func (in *Input) unanswered() string { return in.Kind().Unanswered() }

// asksPerson reports whether in is put to a person, one at a time (C-37).
func (in *Input) asksPerson() bool { return in.Kind().AsksPerson() }

// url returns the question of a URL-mode elicitation; ok is false for others.
func (in *Input) url() (url, message string, ok bool) {
	if in.Method != mcp.MethodElicitationCreate || in.Mode() != "url" {
		return "", "", false
	}
	url, _ = rawjson.Name(rawjson.Get(in.Params, "url"))
	message, _ = rawjson.Name(rawjson.Get(in.Params, "message"))
	return url, message, true
}

// Task is a tool call that the server turned into a task. Legacy clients know
// nothing of it: the flow polls until the task ends and answers the call with
// its result (G.1).
type Task struct {
	ID       []byte        `json:"id"`       // raw taskId token, echoed as it stood
	Interval time.Duration `json:"interval"` // of polling, as the server last wished
	Message  string        `json:"message,omitempty"`
	Fetching bool          `json:"fetching,omitempty"` // a tasks/get is in flight

	refused map[string]refusal // of the answers under these keys; nil: none. It is not kept
}
