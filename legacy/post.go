package legacy

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/observe"
)

// post takes a message from a client.
func (h *HTTP) post(w http.ResponseWriter, r *http.Request) {
	accept := h.acceptOf(r)
	if accept == 0 {
		h.guard.Refused(observe.BadAccept)
		web.WriteNotAcceptable(w, "application/json or text/event-stream")
		return
	}
	if !web.IsJSON(r.Header) {
		h.guard.Refused(observe.BadContentType)
		web.WriteNotJSON(w)
		return
	}
	var from sender
	from.session, from.caller, from.named = h.find(r)
	from.hold = budget.On(h.accountOf(from.session, r))
	defer from.hold.Release()
	body, ok := h.body(w, r, &from)
	if !ok {
		return
	}
	if jsonrpc.IsBatch(body) {
		h.postBatch(w, r, accept, body, &from)
		return
	}
	msg, err := jsonrpc.Parse(body)
	if err != nil {
		if s := from.session; s != nil && message.IsBrokenAnswer(&msg) {
			_ = s.conv.Answer(from.caller, msg) // C.9: no better answer will come
		}
		web.WriteParseError(w, message.ErrorID(&msg), err)
		return
	}
	h.postMessage(w, r, accept, body, &msg, &from)
}

// acceptOf returns what a client takes of what it may be given.
func (h *HTTP) acceptOf(r *http.Request) web.Accept {
	a := web.AcceptOf(r.Header)
	if h.opt.AlwaysStream && a.Has(web.AcceptSSE) {
		return web.AcceptSSE
	}
	return a
}

// sender is who a POST is of, as far as its headers tell, and what it holds.
type sender struct {
	session *session // nil without one
	caller  downstream.Caller
	named   naming
	hold    budget.Hold // of the body; moves to the exchange if there is one
	lent    bool        // the body was not judged
}

func (h *HTTP) postMessage(w http.ResponseWriter, r *http.Request, accept web.Accept, body []byte, msg *jsonrpc.Message, from *sender) {
	s, caller, named := from.session, from.caller, from.named
	if s == nil && named == unknown {
		s, caller = h.rotated(r, msg)
	}
	if msg.Kind() == jsonrpc.Request && h.tooFast(w, r, s, 1, msg.ID) {
		return
	}
	switch {
	case msg.Method == mcp.MethodInitialize && msg.Kind() == jsonrpc.Request:
		if s != nil || !h.relayed(w, r, body, msg) {
			h.initialize(w, r, accept, s, *msg)
		}
		return
	case s == nil && negotiate.Classify(msg.Method, msg.Params, r.Header) == negotiate.Modern:
		h.modern(w, r, body, msg.ID)
		return
	case s == nil && h.relayed(w, r, body, msg):
		return
	}
	conv, caller, ok := h.conversation(w, r, s, caller, named, message.ErrorID(msg))
	if !ok {
		return
	}
	switch msg.Kind() {
	case jsonrpc.Notification:
		h.notify(w, r, s, conv, caller, msg)
	case jsonrpc.Response:
		h.answer(w, r, s, conv, caller, msg)
	default:
		if s == nil || !s.refuse(w, r, caller.Authorization) {
			h.serve(w, r, accept, s, conv, caller, *msg, from)
		}
	}
}

// conversation finds who answers a request: its session's conversation, or one
// without a session. It answers the request itself when there is none.
func (h *HTTP) conversation(w http.ResponseWriter, r *http.Request, s *session, caller downstream.Caller, named naming, id jsonrpc.ID) (downstream.Conversation, downstream.Caller, bool) {
	asked := mcp.Version(web.Header(r.Header, mcp.HeaderProtocolVersion))
	switch {
	case s != nil:
		if !versionAllowed(s.rec.Version, asked) {
			web.WriteBadVersion(w, id)
			return nil, caller, false
		}
		return s.conv, caller, true
	case named == unavailable:
		web.WriteUnavailable(w, id)
		return nil, caller, false
	case named == unknown:
		h.guard.Refused(observe.NoSession)
		h.refuseUnknown(w, web.Header(r.Header, mcp.HeaderSessionID), id)
		return nil, caller, false
	case h.opt.RequireSession:
		h.guard.Refused(observe.NoSession)
		web.WriteError(w, http.StatusBadRequest, id, jsonrpc.CodeInvalidRequest, mcp.HeaderSessionID+" header is missing; initialize first")
		return nil, caller, false
	}
	if asked == "" {
		asked = mcp.V20250326 // what a missing header stands for
	}
	if !asked.IsLegacy() {
		web.WriteBadVersion(w, id)
		return nil, caller, false
	}
	caller = h.caller(r)
	caller.Account = h.opt.Memory.Guest(caller.Principal)
	return h.backend.Stateless(caller, asked), caller, true
}

// versionAllowed judges the MCP-Protocol-Version header of a session.
// Another supported version than the session's is let pass, since clients do
// send them, and changes nothing.
func versionAllowed(session, asked mcp.Version) bool {
	return asked == "" || asked == session || asked.IsLegacy() || !message.VersionHeader(session)
}

// serve runs one request as an exchange.
func (h *HTTP) serve(w http.ResponseWriter, r *http.Request, accept web.Accept, s *session, conv downstream.Conversation, caller downstream.Caller, msg jsonrpc.Message, from *sender) {
	if h.tooBusy(w, r, s, 1, msg.ID) || h.owes(w, r, from, msg.ID) {
		return
	}
	ex := h.begin(w, r, s, accept)
	if ex == nil {
		h.guard.Refused(observe.Draining)
		web.WriteShuttingDown(w, msg.ID)
		return
	}
	ex.hold = from.hold.Move()
	defer ex.leave()
	ctx := context.WithoutCancel(r.Context())
	req := downstream.NewRequest(msg)
	if s != nil && s.streams.Polled() {
		go h.work(ctx, conv, caller, req, ex)
	} else {
		h.work(ctx, conv, caller, req, ex)
	}
	ex.wait(r)
}

func (h *HTTP) work(ctx context.Context, conv downstream.Conversation, caller downstream.Caller, req downstream.Request, out downstream.Reply) {
	defer message.Recover(h.opt.Logger, req.Method, req.ID, out)
	conv.Serve(ctx, caller, req, out)
}

// body reads the message into a buffer of just its size, since the parsed
// message and the flow it starts go on pointing into it.
func (h *HTTP) body(w http.ResponseWriter, r *http.Request, from *sender) ([]byte, bool) {
	if !web.IsPlain(r.Header) {
		w.Header()["Accept-Encoding"] = []string{"identity"} // what would be taken instead
		web.WriteError(w, http.StatusUnsupportedMediaType, "", jsonrpc.CodeInvalidRequest, "the body must not be compressed")
		return nil, false
	}
	if r.ContentLength > h.opt.MaxBody {
		h.guard.Refused(observe.TooLarge)
		web.WriteTooLarge(w, h.opt.MaxBody)
		return nil, false
	}
	var body []byte
	err := from.charge(r.ContentLength)
	switch {
	case err != nil:
	case r.ContentLength >= 0:
		body, err = readExactly(r.Body, int(r.ContentLength))
	default:
		body, err = readMetered(http.MaxBytesReader(w, r.Body, h.opt.MaxBody), &from.hold)
	}
	var tooLarge *http.MaxBytesError
	switch {
	case budget.Short(err):
		h.guard.Refused(observe.ShortOfMemory)
		h.writeShort(w, r, from.session, "", err)
	case errors.As(err, &tooLarge):
		h.guard.Refused(observe.TooLarge)
		web.WriteTooLarge(w, h.opt.MaxBody)
	case err != nil:
		web.WriteError(w, http.StatusBadRequest, "", jsonrpc.CodeParse, "request body ended early")
	default:
		return body, true
	}
	return nil, false
}

// requestCost is what a request is charged for besides its body, in bytes.
const requestCost = 8 << 10

// unproven is how much is set aside for a body before any of it has arrived.
const unproven = 64 << 10

// readExactly reads n bytes. A large size must first be proven by sending the
// beginning: a header alone must not cost us megabytes.
func readExactly(r io.Reader, n int) ([]byte, error) {
	body := make([]byte, min(n, unproven))
	if _, err := io.ReadFull(r, body); err != nil || n <= unproven {
		return body, err
	}
	body = append(make([]byte, 0, n), body...)
	_, err := io.ReadFull(r, body[unproven:n])
	return body[:n], err
}
