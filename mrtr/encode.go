package mrtr

import (
	"bytes"

	"github.com/mcpbridge/bridge/internal/jsonout"
)

// Encode returns the flow as a record that any process can go on from, with
// [Decode] and [Clock.Next]. It holds what the client and the server said: params,
// headers that may be credentials, answers and request state. Whoever stores it seals it.
//
// A flow in state Sending, or one whose Task.Fetching is set, has a request in flight
// of which nobody will hear when its process dies: what it did is unknown (D-15).
//
// It writes what encoding/json would write of record, in a fifth of its time.
func (f *Flow) Encode() ([]byte, error) {
	o := jsonout.Begin()
	defer o.Release()
	f.encode(o)
	err := f.encodeHowFar(o)
	o.End()
	return bytes.Clone(o.Text()), err // takes as much as it needs: it is kept for as long as a call waits
}

func (f *Flow) encode(o *jsonout.Object) {
	o.Int("v", recordVersion)
	o.Always("id", string(f.ID))
	o.Always("method", f.Method)
	o.Raw("params", f.Params)
	o.String("principal", f.Principal)
	o.Bytes("header", f.Header)
	o.Raw("capabilities", f.Capabilities)
	o.String("level", f.Level)
	if f.Home != (Address{}) {
		o.Object("home", f.Home.encode)
	}
	if f.Limits != nil && *f.Limits != defaults {
		o.Object("limits", f.Limits.encode)
	}
	o.True("listsAsk", f.ListsAsk)
	o.True("tasksDeclared", f.TasksDeclared)
	o.True("repeatable", f.Repeatable)
}

func (f *Flow) encodeHowFar(o *jsonout.Object) (err error) {
	o.String("state", string(f.State))
	o.True("resent", f.Resent)
	o.Int("round", int64(f.Round))
	o.Int("stateOnly", int64(f.StateOnly))
	o.Raw("requestState", f.RequestState)
	o.List("inputs", len(f.Inputs), func(o *jsonout.Object, i int) { f.Inputs[i].encode(o) })
	o.Int("hurry", int64(f.Hurry))
	o.List("urls", len(f.URLs), func(o *jsonout.Object, i int) { f.URLs[i].encode(o) })
	if f.Task != nil {
		err = o.Any("task", f.Task)
	}
	if f.Outage != (Outage{}) && err == nil {
		err = o.Any("outage", f.Outage)
	}
	o.String("note", f.Note)
	if f.Clock != (Clock{}) {
		clock := f.Clock.record()
		o.Object("clock", clock.encode)
	}
	o.Object("progress", f.Progress.encode)
	return err
}

func (a Address) encode(o *jsonout.Object) {
	o.String("session", a.Session)
	o.Uint("stream", a.Stream)
}

func (l *Limits) encode(o *jsonout.Object) {
	o.Int("rounds", int64(l.Rounds))
	o.Int("stateOnly", int64(l.StateOnly))
	o.Int("state", int64(l.State))
	o.Int("call", int64(l.Call))
	o.Int("round", int64(l.Round))
	o.Int("serverRequest", int64(l.ServerRequest))
	o.Int("heartbeat", int64(l.Heartbeat))
	o.Int("grace", int64(l.Grace))
}

func (in *Input) encode(o *jsonout.Object) {
	o.Always("key", in.Key)
	o.Always("method", in.Method)
	o.Raw("params", in.Params)
	o.String("serverRequestId", in.ServerRequestID)
	o.String("elicitationId", in.ElicitationID)
	o.True("asked", in.Asked)
	o.True("askedAgain", in.AskedAgain)
	o.True("announced", in.Announced)
	o.Raw("response", in.Response)
}

func (m *URLMemory) encode(o *jsonout.Object) {
	o.Always("url", m.URL)
	o.Always("message", m.Message)
	o.Always("elicitationId", m.ElicitationID)
	o.Int("repeats", int64(m.Repeats))
	o.True("announced", m.Announced)
}

func (c *clockRecord) encode(o *jsonout.Object) {
	o.Int("began", c.Began)
	o.Int("deadline", c.Deadline)
	o.Int("due", c.Due)
	o.Int("answerBy", c.AnswerBy)
	o.Int("beat", c.Beat)
	o.Int("look", c.Look)
	o.True("gone", c.Gone)
}

func (p *Progress) encode(o *jsonout.Object) {
	o.Raw("token", p.Token)
	o.True("started", p.Started)
	o.True("fresh", p.Fresh)
	o.Float("base", p.Base)
	o.Float("last", p.Last)
	o.String("message", p.Message)
}
