package legacy

import (
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/sessions"
)

// complete takes one response, nil for none, and ends the exchange with the
// last one.
func (ex *exchange) complete(msg *downstream.Message) {
	ex.mu.Lock()
	if ex.phase == done || ex.left == 0 {
		ex.mu.Unlock()
		return
	}
	ex.left--
	last := ex.left == 0
	if ex.phase == open && last && ex.w != nil && !ex.accept.Has(web.AcceptJSON) && (msg != nil || len(ex.parts) > 0) {
		ex.startStreamLocked()
	}
	var st *sessions.Stream
	switch {
	case ex.phase == streaming:
		st = ex.stream.Load()
		if last {
			st.Seal(message.OwnText(msg))
		} else if msg != nil {
			st.Put(message.OwnText(msg))
		}
	case !last:
		if msg != nil {
			ex.parts = append(ex.parts, message.OwnText(msg))
		}
	default:
		ex.writePlainLocked(msg)
	}
	if last {
		ex.settleLocked()
	}
	ex.mu.Unlock()
	if st != nil {
		st.Flush()
	}
	if last {
		ex.release()
	}
}

// writePlainLocked writes a response that needed no stream.
func (ex *exchange) writePlainLocked(msg *downstream.Message) {
	if ex.w != nil {
		ex.http.leaving(ex.w)
	}
	switch {
	case ex.w == nil: // the client left without ever seeing an event id
	case ex.batch && msg != nil:
		web.WriteResult(ex.w, message.Array(append(ex.parts, message.OwnText(msg))), ex.http.opt.WriteTimeout)
	case ex.batch && len(ex.parts) > 0:
		web.WriteResult(ex.w, message.Array(ex.parts), ex.http.opt.WriteTimeout)
	case msg != nil:
		ex.http.writeResponse(ex.w, msg)
	default:
		web.WriteEmptyStream(ex.w) // cancelled: a stream that ends, not an error (E.9)
	}
}
