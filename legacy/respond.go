package legacy

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/sse"
)

// Header values that every response shares, so that setting them costs nothing.
// net/http only reads them.
var (
	typeJSON    = []string{"application/json"}
	typeSSE     = []string{"text/event-stream"}
	noCache     = []string{"no-cache"}
	noBuffering = []string{"no"}
	connClose   = []string{"close"}
)

// smallBody is the size up to which net/http finds out the Content-Length by
// itself, for less than we can.
const smallBody = 2048

// writeJSON writes a whole response body.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	writeHead(w, status, len(body))
	_, _ = w.Write(body) // a client that left is none of the exchange's business (E-12)
}

func writeHead(w http.ResponseWriter, status, size int) {
	h := w.Header()
	h["Content-Type"] = typeJSON
	if size >= smallBody {
		h["Content-Length"] = []string{strconv.Itoa(size)}
	}
	w.WriteHeader(status)
}

// writePart is what a client must take of a result within Options.WriteTimeout.
const writePart = 256 << 10

// writeResult is writeJSON for results, which may be so large that a client has
// to read while we write: one that stops reading must not hold the call up.
func (h *HTTP) writeResult(w http.ResponseWriter, body []byte) {
	if len(body) < smallBody {
		writeJSON(w, http.StatusOK, body)
		return
	}
	rc := http.NewResponseController(w)
	writeHead(w, http.StatusOK, len(body))
	for part := range slices.Chunk(body, writePart) {
		_ = rc.SetWriteDeadline(time.Now().Add(h.opt.WriteTimeout))
		if _, err := w.Write(part); err != nil {
			return
		}
	}
}

// writeMessage answers a request that never became an exchange, with status 200
// in the form that the client accepts (E-4).
func writeMessage(w http.ResponseWriter, accept accept, msg []byte) {
	if accept.has(acceptJSON) {
		writeJSON(w, http.StatusOK, msg)
		return
	}
	writeEmptySSE(w)
	_, _ = w.Write(sse.AppendEvent(nil, "", msg))
}

// writeEmptySSE answers with a stream that ends at once.
func writeEmptySSE(w http.ResponseWriter) {
	h := w.Header()
	h["Content-Type"] = typeSSE
	h["Cache-Control"] = noCache
	w.WriteHeader(http.StatusOK)
}

// writeError refuses an HTTP request. The body is a JSON-RPC error, with the id
// of the request when it is known: without it the client would wait on.
func writeError(w http.ResponseWriter, status int, id jsonrpc.ID, code int, message string) {
	writeJSON(w, status, jsonrpc.AppendError(nil, id, &jsonrpc.Error{Code: code, Message: message}))
}

// writeRefusal relays the upstream's demand for authorization (H-3).
func writeRefusal(w http.ResponseWriter, r *downstream.Refusal) {
	if len(r.Challenge) > 0 {
		w.Header()["Www-Authenticate"] = r.Challenge
	}
	if len(r.Body) > 0 {
		writeJSON(w, r.Status, r.Body)
		return
	}
	w.WriteHeader(r.Status)
}

// refuseUnknown answers a request of a session that is not here: it has ended, or is of
// another bridge, or of this one before it was started again.
func (h *HTTP) refuseUnknown(w http.ResponseWriter, session string, id jsonrpc.ID) {
	h.notices.unknown.Info().Str(logfield.SessionID, logfield.Short(session)).Msg("a request named a session that is not here; its client must initialize again")
	writeError(w, http.StatusNotFound, id, jsonrpc.CodeInvalidRequest, "no such session; initialize a new one")
}

// refuseConnection refuses a connection that would be a session.
func (h *HTTP) refuseConnection(w http.ResponseWriter) {
	if h.gate.IsShut() {
		writeShuttingDown(w, "")
		return
	}
	h.notices.full.Warn().Int("limit", h.opt.MaxSessions).Msg("no place for another connection (limits.sessions); a client was refused")
	w.Header().Set("Retry-After", fullAgain)
	writeError(w, http.StatusServiceUnavailable, "", jsonrpc.CodeInternal, "too many connections; try again later")
}

// writeUnavailable keeps the client from giving its session up.
func writeUnavailable(w http.ResponseWriter, id jsonrpc.ID) {
	w.Header().Set("Retry-After", "1")
	writeError(w, http.StatusServiceUnavailable, id, jsonrpc.CodeInternal, "the session cannot be reached at the moment; try again")
}

// writeNotAllowed refuses a method; when says on which condition.
func writeNotAllowed(w http.ResponseWriter, when, allow string) {
	w.Header().Set("Allow", allow)
	writeError(w, http.StatusMethodNotAllowed, "", jsonrpc.CodeInvalidRequest, "method is not allowed here"+when+"; use "+allow)
}

func writeNotAcceptable(w http.ResponseWriter, types string) {
	writeError(w, http.StatusNotAcceptable, "", jsonrpc.CodeInvalidRequest, "Accept must allow "+types)
}

func writeNotJSON(w http.ResponseWriter) {
	writeError(w, http.StatusUnsupportedMediaType, "", jsonrpc.CodeInvalidRequest, "Content-Type must be application/json")
}

// leaving has a response be the connection's last while the bridge drains, so that the
// client's next request finds another instance behind a balancer of connections.
func (h *HTTP) leaving(w http.ResponseWriter) {
	if h.gate.IsShut() {
		w.Header()["Connection"] = connClose
	}
}

func writeShuttingDown(w http.ResponseWriter, id jsonrpc.ID) {
	w.Header().Set("Retry-After", "1")
	writeError(w, http.StatusServiceUnavailable, id, jsonrpc.CodeInternal, "bridge is shutting down")
}

func writeBadVersion(w http.ResponseWriter, id jsonrpc.ID) {
	writeError(w, http.StatusBadRequest, id, jsonrpc.CodeInvalidRequest, "unsupported "+mcp.HeaderProtocolVersion+" header")
}

// writeResponse writes a response as the whole body.
func (h *HTTP) writeResponse(w http.ResponseWriter, msg *downstream.Message) {
	message.Framed(msg, func(text []byte) { h.writeResult(w, text) })
}
