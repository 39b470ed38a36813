package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/clip"
)

// Cause says why a request has no answer. Each cause has one treatment.
type Cause int

// The causes of failure.
const (
	// Unreachable: no connection could be made, or the child could not start.
	Unreachable Cause = iota + 1
	// TLS: the secure connection could not be set up.
	TLS
	// Timeout: the call's deadline passed, or the response head took too long.
	Timeout
	// Unauthorized: 401 or 403; Challenge has the WWW-Authenticate values (H-3).
	Unauthorized
	// NotModern: the peer does not speak 2026-07-28 (E-40).
	NotModern
	// BadResponse: the response breaks HTTP, JSON-RPC or MCP (E-41).
	BadResponse
	// TooLarge: the response or one of its events exceeds the limit.
	TooLarge
	// NoMemory: the response was not taken in, or the request not handed on, since its caller holds
	// too much.
	NoMemory
	// Lost: the connection or the child ended before the response was complete.
	Lost
	// Busy: 429 or 503; RetryAfter is set when the server named a delay. Without a status it is
	// the bridge that had no place for the request in time.
	Busy
	// ServerError: another 5xx without a JSON-RPC error.
	ServerError
	// Canceled: the caller gave the call up.
	Canceled
	// SignIn: a person has to sign in first, or the sign-in failed. Nothing was
	// executed; Detail is for that person.
	SignIn
)

var causeNames = [...]string{
	Unreachable: "unreachable", TLS: "tls", Timeout: "timeout", Unauthorized: "unauthorized",
	NotModern: "not_modern", BadResponse: "bad_response", TooLarge: "too_large", NoMemory: "memory", Lost: "lost",
	Busy: "busy", ServerError: "server_error", Canceled: "canceled",
	SignIn: "sign_in",
}

// String returns a short stable name, fit for logs and metric labels.
func (c Cause) String() string {
	if c > 0 && int(c) < len(causeNames) {
		return causeNames[c]
	}
	return "unknown"
}

// Failure is a request without an answer. Its text is written for the person
// who runs the bridge; it never contains params, results or credentials.
type Failure struct {
	Cause Cause
	// Status is the HTTP status, 0 when there was none.
	Status int
	// Challenge has the WWW-Authenticate values of a 401 or 403, verbatim.
	Challenge []string
	// Own reports that the credentials which were refused are configured, so that no client can bring others.
	Own bool
	// RetryAfter is the delay that a busy server asked for, 0 when unknown. Of SignIn it says that
	// what kept the bridge from it may go away by itself.
	RetryAfter time.Duration
	// Sent is false when the request provably never left (D-15): sending it
	// again cannot execute it twice.
	Sent bool
	// Rule is the translation rule that the server broke, where Cause does not
	// tell; for the log.
	Rule string
	// Detail is the sentence to show.
	Detail string
	// Err is the underlying error, if any.
	Err error
}

func (f *Failure) Error() string {
	if f.Detail == "" {
		return "upstream: " + f.Cause.String()
	}
	return f.Detail
}

func (f *Failure) Unwrap() error { return f.Err }

// Fail makes a Failure of a request that may have reached the server.
func Fail(cause Cause, err error, format string, args ...any) *Failure {
	return &Failure{Cause: cause, Sent: true, Err: err, Detail: fmt.Sprintf(format, args...)}
}

// NotTakenIn makes the Failure of a request whose response was not taken in, for an error of budget.
func NotTakenIn(short error) *Failure {
	return &Failure{Cause: NoMemory, Sent: true, Err: short, Detail: budget.Unread(short)}
}

// Interrupted makes the Failure of a call whose context ended, and returns nil
// while the context is alive.
func Interrupted(ctx context.Context, sent bool) *Failure {
	err := ctx.Err()
	if err == nil {
		return nil
	}
	f := &Failure{Cause: Canceled, Sent: sent, Err: context.Cause(ctx), Detail: "the call to the upstream was cancelled"}
	if errors.Is(f.Err, context.DeadlineExceeded) {
		f.Cause, f.Detail = Timeout, "the upstream did not answer in time"
	}
	return f
}

// maxQuote bounds peer-controlled text inside errors and logs, in bytes.
const maxQuote = 200

// Clip bounds peer-controlled text inside errors and logs.
func Clip(s string) string { return clip.Text(s, maxQuote) }
