package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/gate"
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

// BeginStream writes the head of an event stream.
func BeginStream(w http.ResponseWriter) {
	w.Header()["X-Accel-Buffering"] = noBuffering
	WriteEmptyStream(w)
}

// EndConnection has a response be the connection's last while the bridge drains, so that
// the client's next request finds another instance behind a balancer of connections.
func EndConnection(of *gate.Gate, w http.ResponseWriter) {
	if of.IsShut() {
		w.Header()["Connection"] = connClose
	}
}

// KeepAlive is a comment for event streams on which nothing happens.
var KeepAlive = sse.AppendComment(nil, "keep-alive")

// PingTimeout bounds how long a keep-alive may wait for a client.
const PingTimeout = time.Second

// smallBody is the size up to which net/http finds out the Content-Length by
// itself, for less than we can.
const smallBody = 2048

// WriteJSON writes a whole response body.
func WriteJSON(w http.ResponseWriter, status int, body []byte) {
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

// WritePart is what a client must take of what is written to it within a write timeout,
// in bytes.
const WritePart = 256 << 10

// WriteResult is WriteJSON for results, which may be so large that a client has
// to read while we write: one that stops reading must not hold the call up.
func WriteResult(w http.ResponseWriter, body []byte, timeout time.Duration) {
	if len(body) < smallBody {
		WriteJSON(w, http.StatusOK, body)
		return
	}
	writeHead(w, http.StatusOK, len(body))
	writeParts(w, body, timeout)
}

// WriteMessage answers a request that never became an exchange, with status 200
// in the form that the client accepts (E-4).
func WriteMessage(w http.ResponseWriter, accept Accept, msg []byte) {
	if accept.Has(AcceptJSON) {
		WriteResult(w, msg, patience)
		return
	}
	WriteEmptyStream(w)
	writeParts(w, sse.AppendEvent(nil, "", msg), patience)
}

// patience is how long a client may take for WritePart of what no setting bounds: the
// answer to initialize is as long as the server's instructions.
const patience = time.Minute

// writeParts gives a client so long for each part.
func writeParts(w http.ResponseWriter, body []byte, timeout time.Duration) {
	rc := http.NewResponseController(w)
	for part := range slices.Chunk(body, WritePart) {
		_ = rc.SetWriteDeadline(time.Now().Add(timeout))
		if _, err := w.Write(part); err != nil {
			return
		}
	}
}

// WriteEmptyStream answers with a stream that ends at once.
func WriteEmptyStream(w http.ResponseWriter) {
	h := w.Header()
	h["Content-Type"] = typeSSE
	h["Cache-Control"] = noCache
	w.WriteHeader(http.StatusOK)
}

// WriteError refuses an HTTP request. The body is a JSON-RPC error, with the id
// of the request when it is known: without it the client would wait on.
func WriteError(w http.ResponseWriter, status int, id jsonrpc.ID, code int, text string) {
	WriteJSON(w, status, jsonrpc.AppendError(nil, id, fault.New(code, text)))
}

// WriteRefusal relays the upstream's demand for authorization (H-3).
func WriteRefusal(w http.ResponseWriter, r *downstream.Refusal) {
	if len(r.Challenge) > 0 {
		w.Header()["Www-Authenticate"] = r.Challenge
	}
	if len(r.Body) > 0 {
		WriteJSON(w, r.Status, r.Body)
		return
	}
	w.WriteHeader(r.Status)
}

// WriteUnavailable keeps the client from giving its session up.
func WriteUnavailable(w http.ResponseWriter, id jsonrpc.ID) {
	w.Header().Set("Retry-After", "1")
	WriteError(w, http.StatusServiceUnavailable, id, jsonrpc.CodeInternal, "the session cannot be reached at the moment; try again")
}

// WriteNotAllowed refuses a method; when says on which condition.
func WriteNotAllowed(w http.ResponseWriter, when, allow string) {
	w.Header().Set("Allow", allow)
	WriteError(w, http.StatusMethodNotAllowed, "", jsonrpc.CodeInvalidRequest, "method is not allowed here"+when+"; use "+allow)
}

// IsPerson reports whether somebody opens an address in a browser, to look what is there.
func IsPerson(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// WriteForPeople tells somebody who opens the address of the endpoint in a browser what it is for.
func WriteForPeople(w http.ResponseWriter) {
	w.Header().Set("Allow", "POST, OPTIONS")
	WriteError(w, http.StatusMethodNotAllowed, "", jsonrpc.CodeInvalidRequest,
		"this is an MCP endpoint, which programs use: there is nothing to see in a browser; give this address to an MCP client")
}

// WriteNotAcceptable refuses a client that takes none of these types.
func WriteNotAcceptable(w http.ResponseWriter, types string) {
	WriteError(w, http.StatusNotAcceptable, "", jsonrpc.CodeInvalidRequest, "Accept must allow "+types)
}

// WriteNotJSON refuses a body that is declared as something else.
func WriteNotJSON(w http.ResponseWriter) {
	WriteError(w, http.StatusUnsupportedMediaType, "", jsonrpc.CodeInvalidRequest, "Content-Type must be application/json")
}

// WriteStopping refuses a request while its endpoint ends.
func WriteStopping(w http.ResponseWriter, id jsonrpc.ID, text string) {
	w.Header().Set("Retry-After", "1")
	WriteError(w, http.StatusServiceUnavailable, id, jsonrpc.CodeInternal, text)
}

// WriteBadVersion refuses a protocol version that no legacy client has.
func WriteBadVersion(w http.ResponseWriter, id jsonrpc.ID) {
	WriteError(w, http.StatusBadRequest, id, jsonrpc.CodeInvalidRequest, "unsupported "+mcp.HeaderProtocolVersion+" header")
}

// WriteTooLarge refuses a body above the limit, in bytes.
func WriteTooLarge(w http.ResponseWriter, limit int64) {
	w.Header().Set("Connection", "close") // nobody wants to read the rest
	WriteError(w, http.StatusRequestEntityTooLarge, "", jsonrpc.CodeInvalidRequest, message.TooLarge(limit))
}

// WriteParseError answers a message that is none, with the id that could be read of it.
func WriteParseError(w http.ResponseWriter, id jsonrpc.ID, err error) {
	WriteJSON(w, http.StatusBadRequest, jsonrpc.AppendError(nil, id, message.AsError(err)))
}
