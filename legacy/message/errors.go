package message

import (
	"errors"
	"runtime/debug"
	"strconv"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/rs/zerolog"
)

// Recover answers for a request on which the backend panicked, so that
// neither the client nor a shutdown waits for it. It must be deferred itself.
func Recover(log zerolog.Logger, method string, id jsonrpc.ID, out downstream.Reply) {
	if v := recover(); v != nil {
		log.Error().Interface("panic", v).Bytes("stack", debug.Stack()).Str(logfield.Method, method).Msg("request failed")
		out.Finish(downstream.Failure(id, AsError(nil)))
	}
}

// IsBrokenAnswer reports whether Parse refused a text that was meant as a response to
// what msg, all that it returned, still names.
func IsBrokenAnswer(msg *jsonrpc.Message) bool { return msg.Error != nil && msg.ID != "" }

// ErrorID returns the id that an error about msg carries: that of a request. An id
// that the client took over from a question would end a request of its own.
func ErrorID(msg *jsonrpc.Message) jsonrpc.ID {
	if msg.Error != nil || msg.Result != nil {
		return ""
	}
	return msg.ID
}

// AsError turns any error into one for the client. Only the backend's own
// *jsonrpc.Error may tell details.
func AsError(err error) *jsonrpc.Error {
	var e *jsonrpc.Error
	if errors.As(err, &e) {
		return e
	}
	return fault.Internal("internal error of the bridge")
}

// TooLarge says that a message exceeds this many bytes.
func TooLarge(limit int64) string {
	return "message is larger than " + strconv.FormatInt(limit, 10) + " bytes"
}

// ReasonOf tells why a session ended.
func ReasonOf(cause error) observe.Reason {
	switch {
	case errors.Is(cause, sessions.Expired):
		return observe.Idle
	case errors.Is(cause, sessions.Evicted):
		return observe.Displaced
	case errors.Is(cause, downstream.ErrStopping):
		return observe.Stopped
	case errors.Is(cause, downstream.ErrOperator):
		return observe.Operator
	case errors.Is(cause, sessions.Removed), errors.Is(cause, downstream.ErrElsewhere):
		return observe.Deleted
	}
	return observe.Disconnected
}
