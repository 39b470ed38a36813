package observe

import (
	"time"

	"github.com/mcpbridge/bridge/mcp"
)

// Sight is a session as it stands at a moment. What is in it belongs to the session
// and must not be changed.
type Sight struct {
	ID        string // shortened: a whole one is a credential
	Transport Transport
	Began     time.Time
	Used      time.Time // when it was used last, be it that a request ended; zero where the connection is the session
	Streams   []Stream
	Conversation
}

// Stream is a stream of events as it stands at a moment.
type Stream struct {
	ID       uint64 // 0 is that of GET
	Attached bool   // a client reads it
	Ended    bool   // it has its last event, and is kept for a client that comes back
	Missing  int    // events that have reached no connection
	Kept     int    // events that could be sent again
}

// Conversation is what a session's other side knows of it at a moment.
type Conversation struct {
	Number     uint64 // under which its messages are kept while somebody looks
	Version    mcp.Version
	Relayed    bool     // to a server of the client's own era: nothing is translated
	ClientInfo []byte   // as the client declared it
	Declared   []byte   // capabilities as the client declared them
	Effective  []byte   // those that the server is told of
	Distrusted []string // capabilities that the client declared and did not serve
	Flows      []Flow
}

// Wait is for whom or what a call waits.
type Wait uint8

// What a call can wait for.
const (
	ForServer Wait = iota // a request is with the server
	ForClient             // questions are with the client
	ForTime               // the server wants to be called again later
	ForTask               // the server made a task of it and is asked from time to time
	Waits                 // how many there are
)

var waitNames = [Waits]string{"server", "client", "time", "task"}

// String returns a stable name, fit for logs and metric labels.
func (w Wait) String() string {
	if w < Waits {
		return waitNames[w]
	}
	return "unknown"
}

// Flow is a call as it stands at a moment.
type Flow struct {
	ID        string
	Method    string
	Name      string // of the tool or prompt; "" for other methods
	Waits     Wait
	Began     time.Time
	Since     time.Time // when it began to wait; of the server: when it last gave a sign
	Until     time.Time // when the bridge gives this wait up
	Deadline  time.Time // of the whole call
	Round     int       // 0 is the first request
	StateOnly int       // how often the server asked nothing and wanted to be called again
	StateMost int       // how often it may
	StateCap  string    // the setting that says so
	Reachable bool      // what is sent now can get to the client
	Detached  bool      // no request waits for it: its client gets the answer with the same call again
	Late      bool      // it is detached, and nobody has answered in time: what the server gets then is that
	Questions []Open
}

// Open is a question that waits for its answer.
type Open struct {
	ID       string // by QuestionID; "" where it has none yet
	Method   string
	Kind     Kind
	Asked    bool // false: it waits for the questions before it
	Answered bool // there are others without an answer
	Proven   bool // the client has answered such a question before
	By       By   // who is asked
	Message  string
}

// By is who answers a question.
type By uint8

// Who can answer.
const (
	ByClient By = iota
	ByPage      // a person on a page of the bridge
	ByModel     // a model that the bridge is configured with
)

// QuestionID is enough of a question's id to find its answer, and too little to answer it.
func QuestionID(id string) string { return id[:min(len(id), 10)] }

// Omission is an entry of a server's list that clients do not get to see.
type Omission struct {
	Method string // of the list
	Name   string
	Reason string
}

// Pace is how many calls have ended at a mount: since the start, and in the last
// minute.
type Pace struct {
	Calls, Failed        uint64 // those that failed count as calls, too
	Lately, LatelyFailed uint64
}

// Behind is what a mount has at its server at a moment.
type Behind struct {
	Connections  int
	Listens      int // open
	Reconnecting int // listens that are not
	Command      bool
	Shared       int // processes of the command that serve everybody
	Children     int // processes that serve one session each
	ChildLimit   int
	Cached       []CachedResults
	Printed      []Printed // the oldest first; whoever asked may change the slice
}

// CachedResults are results of one method that need not be asked for again for now.
type CachedResults struct {
	Method         string
	Results, Bytes int
	Oldest, Newest time.Time // when they came
	Until          time.Time // when the last of them is asked for again
}

// Printed is a line that a process printed on its standard error.
type Printed struct {
	At   time.Time
	PID  int
	Text string
}
