package legacy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/stream"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/sessions/store"
)

// Any request of a session may reach any replica. Most can be served by each; an answer,
// a cancellation and the way back to a stream belong to the replica that has the call:
//
//	here? ──no──▶ forward to the seat that the id names ──it has it──▶ served
//	                     │ gone, or it doesn't
//	                     ▼
//	            ask the store whose it is ──of one that lives──▶ forward there
//	                     │ nobody's
//	                     ▼
//	            take it over, exactly one replica ──▶ here
//
// A request that another replica has forwarded is never forwarded again: what it is
// about is here, or the answer is 421.

// Peers are the other replicas that share the store.
type Peers interface {
	// Forward has another replica serve a request with this body. It returns false, and
	// nothing was written, when that replica is gone or has nothing of what the request
	// is about. It waits until it knows.
	Forward(w http.ResponseWriter, r *http.Request, body []byte, to downstream.Seat) bool
	// HandOn is Forward for a request that any replica can serve.
	HandOn(w http.ResponseWriter, r *http.Request, body []byte, to downstream.Seat) bool
	// Others returns the replicas that are alive, without this one.
	Others() []downstream.Seat
}

// nobody is Peers without any.
type nobody struct{}

func (nobody) Forward(http.ResponseWriter, *http.Request, []byte, downstream.Seat) bool { return false }

func (nobody) HandOn(http.ResponseWriter, *http.Request, []byte, downstream.Seat) bool { return false }

func (nobody) Others() []downstream.Seat { return nil }

// passed says why a request comes from another replica.
type passed uint8

const (
	forwarded passed = iota + 1 // since it is about a call that is here
	handedOn                    // since that one is about to stop
)

type passedKey struct{}

// Forwarded marks a request that another replica has forwarded, HandedOn one that another
// replica would have served itself if it were not about to stop.
func Forwarded(r *http.Request) *http.Request { return mark(r, forwarded) }

// HandedOn is described with Forwarded.
func HandedOn(r *http.Request) *http.Request { return mark(r, handedOn) }

func mark(r *http.Request, why passed) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), passedKey{}, why))
}

func isForwarded(r *http.Request) bool { return r.Context().Value(passedKey{}) == forwarded }

// handOn has another replica serve a request while this one stops, and reports whether
// there is one.
func (h *HTTP) handOn(w http.ResponseWriter, r *http.Request) bool {
	if !h.gate.IsShut() || r.Context().Value(passedKey{}) != nil {
		return false
	}
	others := h.opt.Peers.Others()
	if len(others) == 0 || r.ContentLength > h.opt.MaxBody {
		return false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.opt.MaxBody))
	if err != nil {
		return false
	}
	for _, seat := range others {
		if h.opt.Peers.HandOn(w, r, body, seat) {
			return true
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return false
}

// whereabouts is what came of looking for what a request is about.
type whereabouts uint8

const (
	nowhere     whereabouts = iota // there is no such thing
	here                           // it is, by now
	served                         // another replica has it, and the request was served
	unreachable                    // it can't be said now
)

// seekTries bounds how often somebody else may be faster in taking a call over.
const seekTries = 4

// seek looks for a call that is not here, from the seat that its id names, or 0. meant
// tells its record.
func (h *HTTP) seek(w http.ResponseWriter, r *http.Request, body []byte, s *session, caller downstream.Caller, seat downstream.Seat, meant func(store.Kind, *callRecord) bool) whereabouts {
	if isForwarded(r) {
		w.WriteHeader(http.StatusMisdirectedRequest)
		return served
	}
	for range seekTries {
		if seat != h.keeper.seat && h.opt.Peers.Forward(w, r, body, seat) {
			return served
		}
		found, record, err := h.keeper.findCall(s, meant)
		switch {
		case err != nil:
			h.keeper.report("looking for a call", err)
			return unreachable
		case record == nil:
			return nowhere
		case found.Kind == store.Flow && record.Home != seat && record.Home != h.keeper.seat:
			seat = record.Home // it was taken over before
			continue
		}
		err = h.keeper.takeOver(s, caller, found, record)
		switch {
		case err == nil:
			return here
		case !errors.Is(err, downstream.ErrGone):
			h.keeper.report("taking a call over", err)
			return unreachable
		}
	}
	return unreachable
}

// findCall returns the record of a session's call, or of its last word; nil when there is none.
func (k *keeper) findCall(s *session, meant func(store.Kind, *callRecord) bool) (*store.Record, *callRecord, error) {
	var list []store.Record
	err := k.do(func(ctx context.Context) (err error) {
		list, err = k.store.Load(ctx, k.name(s.rec.ID))
		return err
	})
	for i := range list {
		if list[i].Kind != store.Flow && list[i].Kind != store.LastWord {
			continue
		}
		record, err := readCall(&list[i])
		if err != nil {
			k.report("reading a call", err)
			continue
		}
		if meant(list[i].Kind, record) {
			return &list[i], record, nil
		}
	}
	return nil, nil, err
}

// findStream looks for the stream that a GET resumes, and returns false when the request
// was answered.
func (h *HTTP) findStream(w http.ResponseWriter, r *http.Request, s *session, caller downstream.Caller, id stream.EventID) bool {
	if s.kept == nil || s.streams.Find(id.Stream) != nil {
		return true
	}
	is := func(_ store.Kind, record *callRecord) bool { return record.Stream == id.Stream }
	switch h.seek(w, r, nil, s, caller, stream.Number(id.Stream).Seat(), is) {
	case served:
		return false
	case unreachable:
		web.WriteUnavailable(w, "")
		return false
	}
	return true
}

// answer takes the client's response to a server request.
func (h *HTTP) answer(w http.ResponseWriter, r *http.Request, s *session, conv downstream.Conversation, caller downstream.Caller, msg *jsonrpc.Message) {
	err := conv.Answer(caller, *msg)
	if errors.Is(err, downstream.ErrNotHere) && s != nil && s.kept != nil {
		switch h.seek(w, r, msg.AppendTo(nil), s, caller, downstream.SeatOf(msg.ID), asks(msg.ID)) {
		case served:
			return
		case unreachable:
			web.WriteUnavailable(w, "")
			return
		case here:
			_ = conv.Answer(caller, *msg) // what is not open now was answered
		}
	}
	w.WriteHeader(http.StatusAccepted)
}

// asks tells the call that waits for the answer to a question.
func asks(question jsonrpc.ID) func(store.Kind, *callRecord) bool {
	return func(kind store.Kind, record *callRecord) bool {
		if kind != store.Flow {
			return false
		}
		for i := range record.Events {
			if record.Events[i].ID == question {
				return true
			}
		}
		return false
	}
}

// notify takes a notification.
func (h *HTTP) notify(w http.ResponseWriter, r *http.Request, s *session, conv downstream.Conversation, caller downstream.Caller, msg *jsonrpc.Message) {
	if msg.Method == mcp.NotificationCancelled && s != nil && s.kept != nil {
		id := jsonrpc.ID(rawjson.Get(msg.Params, "requestId"))
		if !conv.Knows(id) && h.cancelElsewhere(w, r, s, caller, msg, id) {
			return
		}
	}
	conv.Notify(caller, *msg)
	w.WriteHeader(http.StatusAccepted)
}

// cancelElsewhere has whoever has a call cancel it, and reports whether there is somebody. A
// request's id does not tell where it is, so all are asked.
func (h *HTTP) cancelElsewhere(w http.ResponseWriter, r *http.Request, s *session, caller downstream.Caller, msg *jsonrpc.Message, id jsonrpc.ID) bool {
	if isForwarded(r) {
		w.WriteHeader(http.StatusMisdirectedRequest)
		return true
	}
	body := msg.AppendTo(nil)
	for _, seat := range h.opt.Peers.Others() {
		if h.opt.Peers.Forward(w, r, body, seat) {
			return true
		}
	}
	is := func(kind store.Kind, record *callRecord) bool { return kind == store.Flow && record.Request == id }
	return h.seek(w, r, body, s, caller, 0, is) == served
}

// unheard is the response to a part of a batch.
type unheard struct{ header http.Header }

// Header implements http.ResponseWriter.
func (u *unheard) Header() http.Header {
	if u.header == nil {
		u.header = http.Header{}
	}
	return u.header
}

// Write implements http.ResponseWriter.
func (u *unheard) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader implements http.ResponseWriter.
func (u *unheard) WriteHeader(int) {}
