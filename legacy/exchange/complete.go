package exchange

import (
	"net/http"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/sessions"
)

// What a response leads to is decided under the exchange's lock and done without it: a
// client that reads slowly holds up nobody but who writes to it.

// step is what is to be done after a response.
type step struct {
	stream *sessions.Stream    // to be flushed; nil: none
	w      http.ResponseWriter // for the whole answer, phase answering; nil: it is not written
	parts  [][]byte            // of the whole answer, before the response
	over   bool                // the exchange has ended
}

// complete takes one response, nil for none, and ends the exchange with the
// last one.
func (ex *Exchange) complete(msg *downstream.Message) {
	s := ex.take(msg)
	if s.stream != nil {
		s.stream.Flush()
	}
	if s.w != nil {
		ex.writeWhole(s.w, s.parts, msg)
		ex.settle(true)
	}
	if s.over {
		ex.release()
	}
}

// take decides what a response leads to.
func (ex *Exchange) take(msg *downstream.Message) (s step) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	if ex.phase >= answering || ex.left == 0 {
		return s
	}
	ex.left--
	s.over = ex.left == 0
	if ex.phase == open && s.over && ex.w != nil && !ex.accept.Has(web.AcceptJSON) && (msg != nil || len(ex.parts) > 0) {
		ex.startStreamLocked()
	}
	switch {
	case ex.phase == streaming:
		s.stream = ex.stream.Load()
		if s.over {
			s.stream.Seal(message.CopyText(msg))
		} else if msg != nil {
			s.stream.Answer(message.CopyText(msg))
		}
	case !s.over:
		if msg != nil {
			ex.gatherLocked(message.CopyText(msg), msg.ID)
		}
	case ex.w != nil: // else the client left without ever seeing an event id
		s.w, s.parts = ex.w, ex.parts
		ex.phase = answering
		return s
	}
	if s.over {
		ex.settleLocked()
	}
	return s
}

// writeWhole writes a response that needed no stream.
func (ex *Exchange) writeWhole(w http.ResponseWriter, parts [][]byte, msg *downstream.Message) {
	web.EndConnection(ex.end.opt.Gate, w)
	switch timeout := ex.end.opt.WriteTimeout; {
	case ex.batch && msg != nil:
		web.WriteResult(w, message.Array(append(parts, message.CopyText(msg))), timeout)
	case ex.batch && len(parts) > 0:
		web.WriteResult(w, message.Array(parts), timeout)
	case msg != nil:
		message.Framed(msg, func(text []byte) { web.WriteResult(w, text, timeout) })
	case !ex.accept.Has(web.AcceptSSE): // cancelled: nothing more is said (E-5)
		w.WriteHeader(http.StatusAccepted)
	default:
		web.WriteEmptyStream(w) // the same for who reads streams: one that ends, not an error (E.9)
	}
}

// gatherLocked keeps a response of a batch until the others are there, or in its place that
// there is no memory for it.
func (ex *Exchange) gatherLocked(text []byte, id jsonrpc.ID) {
	if short := ex.gathered.Grow(len(text)); short != nil {
		text = message.Short(id, short)
	}
	ex.parts = append(ex.parts, text)
}

// settle is settleLocked without the lock; whole: the response was written.
func (ex *Exchange) settle(whole bool) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.whole = whole
	ex.settleLocked()
}

// settleLocked ends the response.
func (ex *Exchange) settleLocked() {
	ex.phase = done
	ex.notifyLocked()
}

func (ex *Exchange) notifyLocked() {
	if ex.changed != nil {
		close(ex.changed)
		ex.changed = nil
	}
}

// changedLocked returns what is closed when the phase changes.
func (ex *Exchange) changedLocked() <-chan struct{} {
	if ex.changed == nil {
		ex.changed = make(chan struct{})
	}
	return ex.changed
}

// Wait blocks the handler until the response is over or goes on without it, or
// the client has left.
func (ex *Exchange) Wait(r *http.Request) {
	for {
		ex.mu.Lock()
		var over <-chan struct{}
		c := ex.carrier
		if c == nil && (ex.phase == open || ex.phase == answering) {
			over = ex.changedLocked()
		}
		ex.mu.Unlock()
		if c != nil {
			c.Attend(r)
			return
		}
		if over == nil {
			return
		}
		select {
		case <-over:
		case <-r.Context().Done():
			return
		}
	}
}

// Detach takes the response away before the handler returns; the work may go on. It
// waits for whoever is writing the response. It reports whether the client got anything: one
// that did not was taken for gone.
func (ex *Exchange) Detach() (answered bool) {
	ex.mu.Lock()
	for ex.phase == answering {
		over := ex.changedLocked()
		ex.mu.Unlock()
		<-over
		ex.mu.Lock()
	}
	c := ex.carrier
	ex.w, ex.r, ex.carrier = nil, nil, nil
	answered = ex.whole
	ex.mu.Unlock()
	if c != nil {
		answered = c.Leave()
	}
	return answered
}

// Member returns the Reply of one more request of a batch.
func (ex *Exchange) Member() downstream.Reply { return &member{Exchange: ex} }
