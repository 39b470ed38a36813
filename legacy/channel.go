package legacy

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/rs/zerolog"
)

// ErrDisconnected is the cause of a conversation's end when the client closed
// the connection that was its session (D-T19).
var ErrDisconnected = errors.New("client disconnected")

// channel is a session over one connection that carries everything: stdio, a
// WebSocket, or the pair of GET and POSTs of HTTP+SSE. Closing the connection
// ends the session.
//
//	frame ──▶ receive ──▶ take ──▶ Conversation        (channel_in.go)
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
//	   └──────────────────── close ──────────────────┴──▶ closed
//
// The transport's reader changes the state (admit), as do the goroutine that opens
// (open) and whoever ends the connection (close), all under in. What comes while it is
// opening waits in the backlog.
type channel struct {
	opt       Options
	backend   downstream.Backend
	ctx       context.Context // for the backend; ends with the channel
	cancel    context.CancelFunc
	caller    downstream.Caller
	log       zerolog.Logger
	transport observe.Transport
	born      time.Time
	gate      *gate.Gate // counts requests for its shutdown; nil without a server
	lapse     lapse      // of the credentials of a WebSocket

	out   sync.Mutex         // E-35: messages interleave, their bytes never do
	write func([]byte) error // writes one message; called with out held
	shut  bool               // nothing is written any more

	gone chan struct{} // closed when the connection is of no more use
	once sync.Once
	err  error // why; set before gone is closed

	in       sync.Mutex // guards what follows
	conv     downstream.Conversation
	version  mcp.Version                  // known, and set, before the client hears of it
	opening  bool                         // an initialize is being answered
	backlog  []queued                     // what came behind the initialize being answered
	inFlight map[jsonrpc.ID]*channelReply // by the ids in use
	running  int                          // also those whose id a cancellation freed
	closed   bool
	cause    error          // of closing
	work     sync.WaitGroup // requests, until they are answered and nothing runs for them
}

// queued is a message that waits, and where its response goes.
type queued struct {
	msg    jsonrpc.Message
	answer func([]byte)
}

// newChannel returns a channel whose messages are written by write, which gets
// one JSON message at a time and must not keep it.
func newChannel(ctx context.Context, opt Options, b downstream.Backend, caller downstream.Caller, transport observe.Transport, write func([]byte) error) *channel {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return &channel{
		opt: opt, backend: b, ctx: ctx, cancel: cancel, caller: caller, write: write,
		transport: transport, born: time.Now(),
		log:  opt.Logger.With().Str(logfield.Transport, transport.String()).Logger(),
		gone: make(chan struct{}), inFlight: make(map[jsonrpc.ID]*channelReply),
	}
}

// send writes one message; nil is none. When writing fails the connection is
// given up.
func (c *channel) send(msg []byte) {
	if msg == nil {
		return
	}
	c.out.Lock()
	defer c.out.Unlock()
	if c.shut {
		return
	}
	if err := c.write(msg); err != nil {
		c.shut = true
		c.hangUp(err)
	}
}

// Push implements Pusher. The one connection is always there, so nothing is
// kept or coalesced.
func (c *channel) Push(_ string, msg downstream.Message) { c.sendMessage(&msg) }

// sendMessage gives a message its frame and sends it.
func (c *channel) sendMessage(msg *downstream.Message) {
	framed(msg, c.send)
}

// hangUp tells the transport that the connection is to end, and why; nil means
// that the client closed it.
func (c *channel) hangUp(err error) {
	c.once.Do(func() {
		c.err = err
		close(c.gone)
	})
}

// close ends the conversation for this cause and waits for its requests, whose
// last words still go out if the connection stands. It is idempotent.
func (c *channel) close(cause error) {
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
	c.hangUp(cause)
}

// progressGap is how far behind progress a response stays. The TypeScript SDK
// hands a response on at once and a notification a moment later, so progress
// that it reads together with the response comes too late: the SDK reports a
// token that nobody knows, and some clients give the connection up for that.
const progressGap = 10 * time.Millisecond

// channelReply is the Reply of one request on a channel.
type channelReply struct {
	c      *channel
	id     jsonrpc.ID
	answer func([]byte) // takes the response, nil for none
	fate   atomic.Int32 // waiting, started or withdrawn

	mu       sync.Mutex // orders Send before Finish: nothing follows a response
	over     bool
	progress time.Time // when there was any last
}

// What has become of a request: a client may cancel it before its goroutine runs.
const (
	waiting int32 = iota
	started
	withdrawn
)

// Interactive implements Reply: the connection carries everything.
func (r *channelReply) Interactive() bool { return true }

// Send implements Reply.
func (r *channelReply) Send(msg downstream.Message) { r.Queue(msg) }

// Flush implements Reply: a shared channel holds nothing back.
func (r *channelReply) Flush() {}

// Queue implements Reply.
func (r *channelReply) Queue(msg downstream.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	r.c.sendMessage(&msg)
	if msg.IsProgress() {
		r.progress = time.Now()
	}
}

// Finish implements Reply.
func (r *channelReply) Finish(msg downstream.Message) { r.end(&msg) }

// end takes the response, nil for none.
func (r *channelReply) end(msg *downstream.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	r.over = true
	if msg != nil && !r.progress.IsZero() {
		r.c.pause(progressGap - time.Since(r.progress))
	}
	r.c.settle(r) // first: a quick client may use the id again
	framed(msg, r.answer)
	if r.c.gate != nil {
		r.c.gate.Exit() // now a shutdown may close the connection
	}
	r.c.work.Done()
}

// pause waits, unless the connection is of no more use.
func (c *channel) pause(d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.gone:
	}
}

// Refuse implements Reply: there is no HTTP status to relay (H-13).
func (r *channelReply) Refuse(refusal *downstream.Refusal) bool {
	r.c.lapse.note(r.c.caller.Authorization, refusal)
	return false
}

// Abandon implements Reply.
func (r *channelReply) Abandon() { r.end(nil) }

// Address implements Reply: a connection that ends takes its session along.
func (r *channelReply) Address() downstream.Address { return downstream.Address{} }

// Reachable implements Reply: without the connection there is no session either.
func (r *channelReply) Reachable() bool { return true }

// Continue implements Reply.
func (r *channelReply) Continue(work func()) { go work() }

// gather collects the responses to a batch, which go out as one array when all
// are there (E-17).
type gather struct {
	c     *channel
	mu    sync.Mutex
	left  int
	parts [][]byte
}

func (g *gather) add(msg []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if msg != nil {
		g.parts = append(g.parts, append([]byte(nil), msg...))
	}
	g.left--
	if g.left == 0 && len(g.parts) > 0 {
		g.c.send(array(g.parts))
	}
}
