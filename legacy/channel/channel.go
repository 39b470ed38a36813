// Package channel has the sessions that are connections: stdio, WebSockets and HTTP+SSE.
// The transports bring frames and write messages; what happens between is the same for
// all of them and stands here. A connection's end is its session's.
package channel

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/agenda"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/inorder"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
)

// ErrDisconnected is the cause of a conversation's end when the client closed
// the connection that was its session (D-T19).
var ErrDisconnected = errors.New("client disconnected")

// Channel is a session over one connection that carries everything: stdio, a
// WebSocket, or the pair of GET and POSTs of HTTP+SSE. Closing the connection
// ends the session.
//
//	frame ──▶ receive ──▶ take ──▶ Conversation        (receive.go)
//	                                   │ Reply, Push
//	     write ◀── send, one at a time ┘
//
// It is the same for all three; they only differ in how a message is written
// and how the end shows.
//
//	         initialize             Open returned
//	waiting ────────────▶ opening ────────────────▶ open ──┐ initialize: anew
//	   │   ▲                 │  ▲                    │      │
//	   │   └── Open failed ──┘  └────────────────────┼──────┘
//	   └──────────────────── Close ──────────────────┴──▶ closed
//
// The transport's reader changes the state (admit), as do the goroutine that opens
// (open) and whoever ends the connection (Close), all under in. What comes while it is
// opening waits in the backlog, and so does what comes before that was taken.
//
// Requests run side by side, but begin in the order in which they came (begin): each when the one before has passed
// (downstream.Request). The reader waits for none of them, and neither do cancellations, answers, and pings.
type Channel struct {
	opt       Options
	backend   downstream.Backend
	ctx       context.Context // for the backend; ends with the channel
	cancel    context.CancelFunc
	caller    downstream.Caller
	log       zerolog.Logger
	transport observe.Transport
	born      time.Time
	lapse     lapse // of the credentials of a WebSocket or a stream

	out   sync.Mutex         // E-35: messages interleave, their bytes never do
	write func([]byte) error // writes one message; called with out held
	shut  bool               // nothing is written any more
	later later              // what is written with the next message, at the latest

	declared budget.Hold // what the client said of itself; of whoever opens

	begin inorder.Chain // of its requests: each begins when those before it have

	gone chan struct{} // closed when the connection is of no more use
	once sync.Once
	err  error // why; set before gone is closed

	in        sync.Mutex // guards what follows
	conv      downstream.Conversation
	pusher    *pusher                 // of conv, or of the one that is being opened
	modern    downstream.Conversation // serves what belongs to no session; nil before the first such request
	version   mcp.Version             // known, and set, before the client hears of it
	opening   bool                    // an initialize is being answered
	answering bool                    // and its client may have read that already
	backlog   []queued                // what came behind the initialize being answered
	room      chan struct{}           // closed when the backlog has room again; nil: nobody waits for that
	catching  bool                    // the backlog is being taken: what comes waits behind it
	inFlight  map[jsonrpc.ID]*reply   // by the ids in use
	lasting   map[*reply]struct{}     // what was answered and goes on
	running   int                     // also those whose id a cancellation freed
	ended     bool                    // conv's server is gone: nothing begins in it any more
	why       error                   // it ended
	closed    bool
	cause     error          // of closing
	work      sync.WaitGroup // requests, until they are answered and nothing runs for them
}

// queued is a message that waits, and where its response goes.
type queued struct {
	msg    jsonrpc.Message
	held   int // as take gets it, and what follows
	own    bool
	answer func([]byte)
	hold   budget.Hold
}

// New returns a Channel whose messages are written by write, which gets
// one JSON message at a time and must not keep it.
func New(ctx context.Context, opt Options, b downstream.Backend, caller downstream.Caller, transport observe.Transport, write func([]byte) error) *Channel {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	caller.Account, caller.Transport = opt.Account, transport
	if transport != observe.HTTPSSE {
		caller.HTTP = observe.NoHTTP // that was before the connection became another one
	}
	return &Channel{
		opt: opt, backend: b, ctx: ctx, cancel: cancel, caller: caller, write: write,
		transport: transport, born: time.Now(),
		log:      opt.Logger.With().Str(logfield.Transport, transport.String()).Logger(),
		declared: budget.On(opt.Account), later: later{held: budget.On(opt.Account)}, gone: make(chan struct{}), inFlight: make(map[jsonrpc.ID]*reply), lasting: make(map[*reply]struct{}),
	}
}

// Principal returns who the connection acts for.
func (c *Channel) Principal() string { return c.caller.Principal }

// Account returns what the connection holds.
func (c *Channel) Account() *budget.Account { return c.opt.Account }

// Gone returns what is closed when the connection is of no more use.
func (c *Channel) Gone() <-chan struct{} { return c.gone }

// Err tells why, once Gone is closed; nil: the client closed it.
func (c *Channel) Err() error { return c.err }

// Write has write use the connection while nobody else does.
func (c *Channel) Write(write func() error) error {
	defer c.catchUp()
	c.out.Lock()
	defer c.out.Unlock()
	return write()
}

// send writes one message; nil is none. When writing fails the connection is given up.
func (c *Channel) send(msg []byte) {
	if msg == nil {
		return
	}
	defer c.catchUp()
	c.out.Lock()
	defer c.out.Unlock()
	c.sayLocked()
	c.sendLocked(msg)
}

// announce writes a message, or leaves it to whoever is writing.
func (c *Channel) announce(key string, text []byte) {
	if c.later.add(key, text) {
		c.catchUp()
		return
	}
	c.send(text)
}

// catchUp writes what waits, unless somebody is writing: they look after it when they have
// done. Whoever unlocks out calls it.
func (c *Channel) catchUp() {
	for c.later.some() && c.out.TryLock() {
		c.sayLocked()
		c.out.Unlock()
	}
}

// sayLocked writes what waits; out is held.
func (c *Channel) sayLocked() {
	for _, s := range c.later.take() {
		c.sendLocked(s.text)
	}
}

func (c *Channel) sendLocked(msg []byte) {
	if c.shut {
		return
	}
	if err := c.write(msg); err != nil {
		c.shut = true
		c.HangUp(err)
	}
}

// Changed implements downstream.Pusher: a connection ends with the process, and its session too.
func (c *Channel) Changed() {}

// Detached implements downstream.Pusher: no other replica serves the connection.
func (c *Channel) Detached(uint64, time.Time) {}

// Reaches implements downstream.Pusher.
func (c *Channel) Reaches() bool { return true }

// Accepted implements downstream.Pusher: whose the connection is stays as it is.
func (c *Channel) Accepted(downstream.Caller) bool { return false }

// Push implements Pusher. The one connection is always there, so nothing is kept or
// coalesced but while somebody else writes.
func (c *Channel) Push(key string, msg downstream.Message) {
	message.Framed(&msg, func(text []byte) { c.announce(key, text) })
}

// sendMessage gives a message its frame and sends it.
func (c *Channel) sendMessage(msg *downstream.Message) {
	message.Framed(msg, c.send)
}

// HangUp tells the transport that the connection is to end, and why; nil means
// that the client closed it.
func (c *Channel) HangUp(err error) {
	c.once.Do(func() {
		c.err = err
		close(c.gone)
	})
}

// Close ends the conversation for this cause and waits for its requests, whose
// last words still go out if the connection stands. It is idempotent.
func (c *Channel) Close(cause error) {
	c.in.Lock()
	first := !c.closed
	if first {
		c.closed, c.cause = true, cause
	}
	conv := c.conv
	c.backlog = nil
	c.in.Unlock()
	if first && conv != nil {
		conv.Close(cause)
		c.reportEnd(cause)
	}
	c.cancel()
	c.work.Wait()
	c.out.Lock()
	c.shut = true
	c.out.Unlock()
	c.catchUp()
	c.HangUp(cause)
	c.opt.Account.Close()
}

// Leave closes a connection that is of no more use. Calls under way are answered where it was not the client that ended it.
func (c *Channel) Leave() {
	cause := ErrDisconnected
	select {
	case <-c.gone:
		if downstream.Audible(c.err) {
			cause = c.err
		}
	default:
	}
	c.Close(cause)
}

// look describes a connection that is a session; begun is false before initialize.
func (c *Channel) look(id string) (sight observe.Sight, begun bool) {
	conv := c.conversation()
	if conv == nil {
		return sight, false
	}
	return observe.Sight{ID: logfield.Short(id), Transport: c.transport, Began: c.born, Conversation: conv.Look()}, true
}

// conversation returns that of the session, nil before initialize.
func (c *Channel) conversation() downstream.Conversation {
	c.in.Lock()
	defer c.in.Unlock()
	return c.conv
}

// reportEnd tells who watches that the session of a connection has ended.
func (c *Channel) reportEnd(cause error) {
	if c.opt.Watch != nil {
		c.opt.Watch.SessionEnded(observe.Session{
			Version: c.version, Transport: c.transport, Reason: message.ReasonOf(cause), Broken: c.broken(), Took: time.Since(c.born),
		})
	}
}

// broken reports whether the connection ended in an error.
func (c *Channel) broken() bool {
	select {
	case <-c.gone:
		return c.err != nil
	default:
		return false
	}
}

// WatchCredentials begins to look after the credentials that the connection came with.
func (c *Channel) WatchCredentials(term downstream.Term) {
	c.lapse.matters, c.lapse.term = true, term
}

// KeepAlive has the connection pinged after silence of this length, by whoever runs the
// agenda, until it is gone or stop is called. It also ends the connection when its
// credentials have lapsed.
func (c *Channel) KeepAlive(on *agenda.Agenda, every time.Duration, ping func() error) (stop func()) {
	p := &pinger{c: c, ping: ping, every: every, last: time.Now()}
	p.beat.Item = p
	on.Add(&p.beat)
	return p.beat.Remove
}
