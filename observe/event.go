package observe

import "time"

// Event is one message that went by.
type Event struct {
	Seq     uint64
	At      time.Time
	Mount   string
	Session uint64 // as Conversation.Number; 0: of nobody in particular
	Call    uint64 // which of the client's calls it belongs to; 0: none
	Hop     Hop
	Out     bool   // from the bridge; false: to it
	Kind    string // request, response, error, notification, question, answer, end; begun: the call had begun when somebody looked
	Method  string // of a response: that of its request
	Name    string // of the tool or prompt that the call is of; "" of others
	Client  string // whose session it is, as it calls itself
	ID      string // JSON-RPC id on this hop
	Status  string // what a response says: complete, input_required, an error's code, a cause
	Round   int    // of the upstream hop; 1 is the first
	Bytes   int    // of params or result
	Took    time.Duration
	// Body is the JSON-RPC message as it may be seen; nil where nobody wants it, nobody
	// may see it, or it was too long.
	Body []byte
}

// Hop is one side of the bridge.
type Hop uint8

// The hops.
const (
	Downstream Hop = iota // between client and bridge
	Upstream              // between bridge and server
)

// Ended is a call that has ended, and when.
type Ended struct {
	At    time.Time
	Mount string
	CallEnd
}
