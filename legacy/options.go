package legacy

import (
	"cmp"
	"net/http"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/rates"
	"github.com/mcpbridge/bridge/internal/turns"
	"github.com/mcpbridge/bridge/legacy/session"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/sessions"
	"github.com/mcpbridge/bridge/sessions/store"
	"github.com/rs/zerolog"
)

// Options bounds and tunes a legacy server. The zero value of each field
// stands for the default that its comment names.
type Options struct {
	// AllowedHosts lists the values of Host that requests may carry, with or
	// without a port, against DNS rebinding. Empty: loopback names only. "*"
	// allows every host.
	AllowedHosts []string
	// AllowedOrigins lists the origins, such as https://app.example.com, whose
	// pages may call (E-11). Empty: loopback origins. "*" allows every origin.
	// Requests without an Origin, and those from an allowed host's own origin,
	// pass in any case.
	AllowedOrigins []string
	// Principal names who an HTTP request acts for, opaquely; nil: a hash of
	// its Authorization header (H-6).
	Principal func(*http.Request) string
	// CredentialsEndHere says that the server never sees what clients bring: then it
	// accepts no token, and none takes the place of another (H-6).
	CredentialsEndHere bool
	// Vouched reports whether the server has accepted credentials for something that it
	// refuses others: only who brings such ones has shares of its own of memory, turns and
	// rates. It is not asked where Principal is set; nil: the server vouches for everybody.
	Vouched func(authorization string) bool
	// Genuine reports whether the server knows a newer token, which it has accepted for
	// something or was not shown before, from one that anybody writes with the claims of the one
	// that a session is bound to. It may ask the server, in the turns of a tenant. nil: what it
	// accepts it knows.
	Genuine func(tenant, bound, newer string, accepted bool) bool

	// Admit judges the credentials of a request before anything else is done with it; nil
	// is all right. Without it the upstream alone does that. With it Principal must be set.
	Admit func(*http.Request) *downstream.Refusal
	// Withdrawn returns what tells, for as long as something lasts that was opened with credentials which Admit took,
	// whether it would refuse them by now, whatever their time. That does not wait for anybody; nil: nobody can tell.
	Withdrawn func(authorization string) (withdrawn func() bool)
	// Challenge returns the challenges of the upstream as the client of a request is to
	// see them; nil: as they are.
	Challenge func(r *http.Request, challenges []string) []string
	// Memory is what all that clients and servers make the process hold is charged to;
	// nil: it is without bounds.
	Memory *budget.Budget

	// Rates bounds how fast requests may come; nil: as fast as they like. TierClaim and
	// TierHeader say where a client's tier is found; empty: nowhere.
	Rates      *rates.Limiter
	TierClaim  string
	TierHeader string

	// Turns admits modern requests; nil: all at once.
	Turns *turns.Queue

	// Endless is how much of the process all that is at a server without a turn may take,
	// whatever it is; nil: as much as it likes. Of one endpoint that are streams which are
	// handed on and never end by themselves: modern listens, and GETs of sessions that the
	// server has. They are no requests under way, but each takes a connection to the server
	// besides that of its client, which it may share with many others. There are as many as
	// MaxSessions at most.
	Endless *budget.Places

	MaxBody     int64 // bytes of one message from the client; 4 MiB
	MaxBatch    int   // messages in one batch; 64
	MaxSessions int   // live sessions; see sessions.Table for who gives way; 10,000
	MaxStreams  int   // ended and delivered streams kept per session for resume; 16
	MaxPending  int   // messages kept per session while nobody listens; 64
	MaxInFlight int   // requests under way per session; 256
	Log         sessions.Limits

	// Store keeps the sessions of Streamable HTTP beyond the process; nil: they end
	// with it. StoreScope tells those of several endpoints in one store apart. The
	// store is not closed.
	Store      store.Store
	StoreScope string
	// StoreRoom is how much clients may have kept there; nil: without bounds.
	StoreRoom *budget.Room
	// Replica is the number of this one, 0 without a store. Peers reach the others that share
	// the store; nil: they cannot be reached, and of what they do not bring to an end the
	// store alone tells.
	Replica downstream.ReplicaID
	Peers   Peers
	// StoreWait is how long a question, an answer and the end of a call wait for a store that
	// cannot be reached, if they may; 0: not at all.
	StoreWait time.Duration
	// Unload is how long a question waits in memory when its client is not connected, and a session that
	// nobody uses; then they are in the store alone, until somebody comes for them or
	// something is due. 0: they stay. MaxUnloaded bounds the calls of a session there; 32.
	Unload      time.Duration
	MaxUnloaded int

	CommitDelay  time.Duration // a response that takes longer becomes SSE (E-6); 2 s
	KeepAlive    time.Duration // longest silence on an SSE stream; 15 s
	IdleTimeout  time.Duration // life of an unused session; 45 min
	Retention    time.Duration // how long an ended stream can be resumed (E-20); 5 min
	WriteTimeout time.Duration // how long a client may block one write; 10 s
	ParkAfter    time.Duration // a stream that is quiet for this long gives its goroutine up (ConnContext); 1 s

	// Poll ends the stream of a call that has been open for this long, and has the
	// client come back for the rest (E-8); 0: never. Only clients that know of that
	// are asked to. Such streams are not parked.
	Poll time.Duration
	// PollPause is how long a client is to stay away then; 500 ms.
	PollPause time.Duration

	// NoPark leaves every stream its goroutine, however quiet it is.
	NoPark bool
	// AlwaysStream answers with an event stream whenever the client takes one (E-4).
	AlwaysStream bool
	// RequireSession refuses requests without a session id instead of serving
	// them statelessly.
	RequireSession bool
	// NoGET answers 405 to GET. List changes and updates then have no
	// way to the client.
	NoGET bool
	// NoWebSocket takes an upgrade to WebSocket for a plain GET.
	NoWebSocket bool
	// SSEMessages, when set, offers HTTP+SSE on the MCP endpoint, too: a GET
	// without session opens it and is told to POST to this path (E-28). Such
	// clients are better served on a path of their own, by HTTP.SSE.
	SSEMessages string

	// Watch is told which sessions end and which requests are turned away; nil: nobody is.
	Watch observe.Watcher

	Logger zerolog.Logger // the zero Logger is silent
}

func (o Options) withDefaults() Options {
	o.MaxBody = cmp.Or(o.MaxBody, 4<<20)
	o.MaxBatch = cmp.Or(o.MaxBatch, 64)
	o.MaxSessions = cmp.Or(o.MaxSessions, 10_000)
	o.MaxStreams = cmp.Or(o.MaxStreams, 16)
	o.MaxPending = cmp.Or(o.MaxPending, 64)
	o.MaxInFlight = cmp.Or(o.MaxInFlight, 256)
	o.CommitDelay = cmp.Or(o.CommitDelay, 2*time.Second)
	o.KeepAlive = cmp.Or(o.KeepAlive, 15*time.Second)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 45*time.Minute)
	o.Retention = cmp.Or(o.Retention, 5*time.Minute)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 10*time.Second)
	o.ParkAfter = cmp.Or(o.ParkAfter, time.Second)
	o.PollPause = cmp.Or(o.PollPause, 500*time.Millisecond)
	o.MaxUnloaded = cmp.Or(o.MaxUnloaded, 32)
	if o.Peers == nil {
		o.Peers = nobody{}
	}
	if o.Store != nil && o.Replica == 0 {
		o.Replica = downstream.NewReplicaID()
	}
	return o
}

// maxOwed returns how many answers of a session may wait to be fetched: as many as may be under way in it and
// wait in the store, so that a client loses none which has no more open than that.
func (o *Options) maxOwed() int {
	return int(float64(o.MaxInFlight)*o.Rates.Most()) + o.MaxUnloaded
}

// term is how long credentials last that have just been admitted.
func (o *Options) term(authorization string) downstream.Term {
	term := downstream.Term{Ends: session.Expiry(authorization)}
	if o.Withdrawn != nil {
		term.Withdrawn = o.Withdrawn(authorization)
	}
	return term
}
