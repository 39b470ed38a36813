package exchange

import (
	"net/http"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/agenda"
	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/legacy/stream"
)

// Options are those of the exchanges of an endpoint. All but Replica and StoreWait are needed.
type Options struct {
	Streams *stream.Endpoint
	Gate    *gate.Gate // counts what is under way
	// Refuse relays the upstream's demand for authorization.
	Refuse func(http.ResponseWriter, *http.Request, *downstream.Refusal)

	CommitDelay  time.Duration // a response that takes longer becomes SSE (E-6)
	WriteTimeout time.Duration // how long a client may block one write
	Retention    time.Duration // how long a last word is kept

	Due func(flow []byte) (time.Time, error) // downstream.Backend.Due

	Replica   downstream.ReplicaID // of this replica, 0 without a store
	StoreWait time.Duration        // how long what waits may wait for a store; 0: not at all
}

// Endpoint is what the exchanges of an endpoint share. Its owner calls Run.
type Endpoint struct {
	opt     Options
	commits *agenda.Agenda // exchanges that become streams if they take long (E-6)
}

// NewEndpoint returns an endpoint without exchanges.
func NewEndpoint(opt Options) *Endpoint {
	return &Endpoint{opt: opt, commits: agenda.New(opt.CommitDelay)}
}

// Run looks after the responses that have taken long, and returns how long it may be
// until it should run again.
func (e *Endpoint) Run() time.Duration { return e.commits.Run(0) }

// Fresh returns how many exchanges wait to become streams.
func (e *Endpoint) Fresh() int { return e.commits.Len() }
