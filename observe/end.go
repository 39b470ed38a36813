package observe

import (
	"strconv"
	"time"

	"github.com/mcpbridge/bridge/mcp"
)

// Watcher is told what has ended. Its methods are called on the path of a call and
// under its locks, so they neither block nor allocate nor call back. They are safe for
// concurrent use.
type Watcher interface {
	// SessionOpened says who opened a session, as the client declared, and what it speaks.
	SessionOpened(client string, version mcp.Version)
	CallEnded(CallEnd)
	QuestionEnded(Question)
	SessionEnded(Session)
	// RequestEnded says how a request to the server went.
	RequestEnded(Request)
	// Resumed says how a client's attempt to fetch the rest of a stream went.
	Resumed(Resumption)
	// Refused says that an HTTP request of a client was turned away at the door.
	Refused(why Refusal)
	// Distrusted says that a client is no longer asked for something that it declared.
	Distrusted(Kind)
	// Passed says that a request went to the server as it was, be it a modern client's
	// or one of a client that is relayed to a server of its own era.
	Passed(modern bool)
	// Modern says that a modern client was there, by what its requests say of it.
	Modern(client, version string)
	// Repeated says that a request to the server was sent again.
	Repeated(Repeat)
	// Lost says that something was told to a client in the words of an older revision,
	// or not at all, by a word of package translate.
	Lost(of mcp.Version, what string)
	// Cached says whether a result that may be kept was there.
	Cached(hit bool)
	// Authorized says what came of a step on the way to a token, in the words of package
	// authorize.
	Authorized(step, outcome string)
	// Overhead says how long the bridge itself took for a part of a call. It is
	// measured for one call in [OverheadEvery].
	Overhead(Phase, time.Duration)
}

// OverheadEvery is how many calls there are to one whose overhead is measured.
const OverheadEvery = 16

// Phase is a part of the bridge's own work at a call.
type Phase uint8

// The phases.
const (
	ToServer Phase = iota // from the arrival of the request to the first round
	ToClient              // from the server's last word to the client's
	Phases                // how many there are
)

var phaseNames = [Phases]string{"request", "response"}

// String returns a stable name, fit for metric labels.
func (p Phase) String() string {
	if p < Phases {
		return phaseNames[p]
	}
	return "unknown"
}

// Repeat is why a request was sent to the server again.
type Repeat uint8

// The reasons.
const (
	HeaderMismatch Repeat = iota // the server has other schemas than the bridge knew
	OtherVersion                 // the server wants another version of the protocol
	RawName                      // the server compares names without decoding them
	Busy                         // the server asked to come again
	BrokenLine                   // the request or its answer did not arrive
	StateOnly                    // the server asked nothing and wants to be called again
	Repeats                      // how many there are
)

var repeatNames = [Repeats]string{"header_mismatch", "version", "raw_name", "busy", "connection", "state_only"}

// String returns a stable name, fit for metric labels.
func (r Repeat) String() string {
	if r < Repeats {
		return repeatNames[r]
	}
	return "unknown"
}

// End is how a call ended. Every call has exactly one. Calls are the requests of clients that
// the bridge translates or answers itself, initialize included; one that is made again while it
// waits counts once.
type End uint8

// The ends of a call.
const (
	Complete  End = iota // answered with a result
	Failed               // answered with an error, the server's or the bridge's
	Cancelled            // by its client, which gets no answer
	Expired              // a time limit passed
	Evicted              // a limit on how many made it give way
	Shutdown             // the bridge stopped
	Ends                 // how many there are
)

var endNames = [Ends]string{"complete", "failed", "cancelled", "expired", "evicted", "shutdown"}

// String returns a stable name, fit for logs and metric labels.
func (e End) String() string {
	if e < Ends {
		return endNames[e]
	}
	return "unknown"
}

// CallEnd is a client's request that has ended.
type CallEnd struct {
	Method  string
	Version mcp.Version // of the session
	Took    time.Duration
	End     End
	// Cause says why it did not complete, as one of the bridge's own words; "" otherwise.
	Cause string
	// Code is that of the JSON-RPC error that the client got; 0: none.
	Code int
	// ToolError says that the result is that of a tool which failed.
	ToolError bool
	// Rounds is how many requests went up for it; 0: it was answered here.
	Rounds    int
	Transport Transport
	HTTP      HTTP // that the request came in
	// Tool is the name of the tool as it stands in the request, as JSON; nil for other
	// methods. It is not to be kept.
	Tool []byte
	// Session is shortened, as the log has it; "" where there is none.
	Session string
	// Serial is what the log's name of the call is made of, by CallID; 0: it has none.
	Serial uint64
	// ID and Name, of the tool or prompt, are there for those that are Unusual.
	ID, Name string
	// Silences is how often nobody answered what the server asked, and Silence how long the
	// answer was waited for each time. Where a call is left to another process only the
	// latter's count.
	Silences int
	Silence  time.Duration
}

// CallID is how the log names a call.
func CallID(serial uint64) string { return "f" + strconv.FormatUint(serial, 10) }

// Amiss reports whether a call ended as nobody wanted: whoever cancelled it did, be it its
// client, who runs the bridge, or who stopped it.
func (c *CallEnd) Amiss() bool {
	return c.End == Failed || c.End == Expired || c.End == Evicted || c.ToolError
}

// Unusual reports whether people may want to know of a call that has ended.
func (c *CallEnd) Unusual() bool { return c.End != Complete || c.ToolError || c.Silences > 0 }

// Request is a request to the server that has ended.
type Request struct {
	Method  string
	Version mcp.Version // that it was made in
	Took    time.Duration
	Result  Result
	Cause   string // of a failure: one of the bridge's own words; "" when there was an answer
	Code    int    // of the server's JSON-RPC error; 0: none
	HTTP    HTTP   // that the answer came in
	// Params and Answer are what was sent and what came back: nil where that is no
	// result. They are not to be kept.
	Params, Answer []byte
}

// Result is what came of a request to the server.
type Result uint8

// The results.
const (
	Final         Result = iota // the last word
	InputRequired               // the server wants answers, or another try
	Task                        // the server made a task of it
	Error                       // an error, or no answer
	Results                     // how many there are
)

var resultNames = [Results]string{"complete", "input_required", "task", "error"}

// String returns a stable name, fit for logs and metric labels.
func (r Result) String() string {
	if r < Results {
		return resultNames[r]
	}
	return "unknown"
}

// Session is a session that has ended.
type Session struct {
	Version   mcp.Version
	Transport Transport
	Reason    Reason
	Broken    bool // its connection ended in an error
	Took      time.Duration
}

// Reason is why a session ended.
type Reason uint8

// The reasons.
const (
	Deleted      Reason = iota // its client ended it, or somebody elsewhere
	Idle                       // nothing used it for too long
	Displaced                  // it made room for another one
	Disconnected               // its client closed the connection that was the session
	Stopped                    // the bridge stopped
	Operator                   // who runs the bridge ended it
	Reasons                    // how many there are
)

var reasonNames = [Reasons]string{"delete", "idle", "evicted", "disconnect", "shutdown", "operator"}

// String returns a stable name, fit for logs and metric labels.
func (r Reason) String() string {
	if r < Reasons {
		return reasonNames[r]
	}
	return "unknown"
}

// Resumption is what a client got that came back for the rest of a stream.
type Resumption uint8

// The outcomes of a resumption.
const (
	Replayed    Resumption = iota // all that it missed
	Gap                           // some of it was no longer there
	Unknown                       // nothing: the event id was not known, or no longer
	Resumptions                   // how many there are
)

var resumptionNames = [Resumptions]string{"replayed", "gap", "unknown"}

// String returns a stable name, fit for logs and metric labels.
func (r Resumption) String() string {
	if r < Resumptions {
		return resumptionNames[r]
	}
	return "unknown"
}

// Refusal is why an HTTP request of a client was turned away.
type Refusal uint8

// The refusals.
const (
	BadHost Refusal = iota
	BadOrigin
	BadAccept
	BadContentType
	TooLarge
	NoSession // named one that is not here, or named none where one is required
	Draining
	ShortOfMemory
	TooFast
	SlowBody
	InFlight // too many are under way
	TooMany  // sessions or connections
	Refusals // how many there are
)

var refusalNames = [Refusals]string{"host", "origin", "accept", "content_type", "size", "session", "draining", "memory", "rate", "slow_body", "in_flight", "limit"}

var refusalStatus = [Refusals]int{403, 403, 406, 415, 413, 404, 503, 503, 429, 400, 429, 503}

// Status is that of the HTTP answer.
func (r Refusal) Status() int {
	if r < Refusals {
		return refusalStatus[r]
	}
	return 0
}

// String returns a stable name, fit for logs and metric labels.
func (r Refusal) String() string {
	if r < Refusals {
		return refusalNames[r]
	}
	return "unknown"
}
