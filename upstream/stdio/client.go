package stdio

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/inorder"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/internal/transport"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/upstream"
)

// Defaults of Options.
const (
	DefaultMaxLine    = 16 << 20
	DefaultGrace      = 2 * time.Second
	DefaultMinBackoff = 250 * time.Millisecond
	DefaultMaxBackoff = 30 * time.Second
	DefaultPing       = 30 * time.Second
)

const (
	// stable is how long a child that answered nothing must have run for its end
	// not to count as a crash on start.
	stable = 30 * time.Second
	// maxStartWait is the longest that a call waits for the next start.
	maxStartWait = 5 * time.Second
)

// Client is an upstream.Caller for a server that runs as a child process. The child is
// started by the first call, and again by the first call after it ended: soon if it
// had come up, and else at growing intervals. All callers share it (E-49), but those under whose
// calls it ends again and again.
type Client struct {
	opt     Options
	seldom  zerolog.Logger
	ctx     context.Context // ends with Close
	crashes *crashes
	answers atomic.Bool // a process of the command has answered server/discover: so will the next ones

	mu        sync.Mutex
	stop      context.CancelFunc
	child     *child
	greetings greetings
	buried    *child // the one before, which ended
	delays    *backoff.ExponentialBackOff
	startAt   time.Time // the next start is not before
	runs      uint64    // children that were started
	ending    sync.WaitGroup
}

var _ upstream.Caller = (*Client)(nil)

// New makes a client. Nothing is started yet.
func New(opt Options) (*Client, error) {
	if opt.Command == "" {
		return nil, errors.New("the upstream command is empty")
	}
	opt.MaxLine = cmp.Or(opt.MaxLine, DefaultMaxLine)
	opt.Grace = cmp.Or(opt.Grace, DefaultGrace)
	opt.Ping = cmp.Or(opt.Ping, DefaultPing)
	if opt.Tell && opt.Tail == nil {
		opt.Tail = new(Tail)
	}
	delays := backoff.NewExponentialBackOff()
	delays.InitialInterval = cmp.Or(opt.MinBackoff, DefaultMinBackoff)
	delays.MaxInterval = cmp.Or(opt.MaxBackoff, DefaultMaxBackoff)
	delays.Multiplier = 2
	delays.Reset()
	s := &Client{opt: opt, greetings: greetings{patience: opt.least()}, delays: delays, crashes: newCrashes(), seldom: logfield.AtMost(SkippedBurst, opt.Log)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.answers.Store(opt.Modern)
	return s, nil
}

// Close implements Caller: it ends the child and waits for that, at
// most about twice the grace period.
func (s *Client) Close() error {
	s.mu.Lock()
	s.stop()
	if s.child != nil {
		s.child.stop()
	}
	s.mu.Unlock()
	s.ending.Wait()
	return nil
}

// Do implements Caller.
func (s *Client) Do(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
	return s.run(ctx, call, sink{notify: notify, idle: call.Idle})
}

// Listen implements Caller. A subscription ends with the process; asking for
// it again starts the next one (C-19).
func (s *Client) Listen(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) error {
	return upstream.EndOfListen(s.run(ctx, call, sink{notify: notify, idle: call.Idle, listen: true}))
}

func (s *Client) run(ctx context.Context, call *upstream.Call, to sink) (*upstream.Answer, error) {
	if f := upstream.Interrupted(ctx, false); f != nil {
		return nil, f
	}
	req := &request{call: call, params: call.Params, own: true}
	ans, err := s.send(ctx, req, to)
	ans.Settle(s.opt.Fallback, 0)
	// That an error is a refusal, and nothing has run, is not to be seen of it here.
	if err == nil && ans.Error != nil && ans.Error.Code == mcp.CodeUnsupportedVersion && upstream.ReadOnly(call.Method) {
		if version := upstream.Mutual(s.opt.Fallback, ans.Error, string(mcp.V20260728)); version != "" {
			req.params, req.own = upstream.Redeclare(req.params, version), false
			ans, err = s.send(ctx, req, to)
			ans.Settle(s.opt.Fallback, 0)
		}
	}
	return ans, err
}

// Verbatim sends the request of a modern client as it is: under a fresh id, but
// with the version that the client chose, and the outcome as it came. For
// subscriptions/listen that is the response which ends the subscription.
func (s *Client) Verbatim(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
	if f := upstream.Interrupted(ctx, false); f != nil {
		return nil, f
	}
	req := &request{call: call, params: call.Params}
	return s.send(ctx, req, sink{notify: notify, idle: call.Idle, listen: call.Method == mcp.MethodListen})
}

// Notify hands a notification on: the method, the params and whose it is are those of a call.
func (s *Client) Notify(ctx context.Context, call *upstream.Call) error {
	c, err := s.get(ctx, call)
	if err != nil {
		return err
	}
	if err := c.foreign(); err != nil {
		return err
	}
	s.leave(c, call)
	return c.tell(ctx, s.opt.Account, transport.EndLine(jsonrpc.AppendNotification(nil, call.Method, call.Params)), new(inorder.Link), call.Link)
}

// send makes an attempt, and another one when the process turns out to have
// ended before the request was written.
func (s *Client) send(ctx context.Context, req *request, to sink) (*upstream.Answer, error) {
	c, ans, err := s.attempt(ctx, req, to)
	if f, ok := err.(*upstream.Failure); ok && f.Cause == upstream.Lost && !f.Sent { // it ended just now
		c, ans, err = s.attempt(ctx, req, to)
	}
	if f, ok := err.(*upstream.Failure); ok && f.Cause == upstream.Lost {
		s.explain(ctx, c, f)
		if s.ctx.Err() != nil {
			f.Cause, f.Detail = upstream.Canceled, "the upstream client was closed"
		}
	}
	return ans, err
}

// attempt gives a request to the child, which it returns; nil: there is none.
func (s *Client) attempt(ctx context.Context, req *request, to sink) (*child, *upstream.Answer, error) {
	c, err := s.get(ctx, req.call)
	if err != nil {
		return nil, nil, err
	}
	if req.call.Method != mcp.MethodDiscover {
		if err := c.foreign(); err != nil {
			return c, nil, err
		}
		if req.own {
			req.params = c.declares(req.params)
		}
	}
	begun := to.begun()
	ans, err := c.do(ctx, req, to)
	switch {
	case err != nil && begun != nil && *begun: // it was no request any more
	case err != nil:
		if f, ok := err.(*upstream.Failure); ok && f.Cause == upstream.Timeout && f.Sent && req.own && req.call.Method == mcp.MethodDiscover {
			c.silent.Store(true)
		}
		s.broke(c, req.call, err)
	case req.call.Method == mcp.MethodDiscover:
		if req.own { // else a client has asked it, in whatever way
			c.introduced(ans)
		}
		s.answers.Store(true)
		fallthrough
	default:
		c.served.Store(true)
	}
	return c, ans, err
}

// retiring is how often it is looked whether a process that was retired has calls still.
const retiring = time.Second

// Retire has the next request start another process, as when the command is another version by now. The one that runs ends
// when its calls have.
func (s *Client) Retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.child
	if c == nil || s.ctx.Err() != nil || !c.takes() { // that is only just asked what it is
		return
	}
	s.child = nil
	c.ours.Store(true)
	s.ending.Go(func() {
		defer c.stop()
		look := time.NewTicker(retiring)
		defer look.Stop()
		for {
			select {
			case <-look.C:
				if len(c.calls()) == 0 {
					return
				}
			case <-c.ended:
				return
			case <-s.ctx.Done():
				return
			}
		}
	})
}

// Shows waits until a process that was asked what it is has shown that, or has ended, or until stop is closed, and reports whether it is a legacy
// server that says nothing to what it does not know.
func (s *Client) Shows(stop <-chan struct{}) (legacy bool) {
	s.mu.Lock()
	c := s.child
	s.mu.Unlock()
	if c == nil || c.ready == nil {
		return false
	}
	select {
	case <-c.ready:
		return len(c.offered) > 0
	case <-stop:
		return false
	}
}

// offers returns the versions that the command offers as a legacy server, nil if it is not known to be one. Who is told that decides
// what follows, and may ask again: it may be another version by then. What a silent process has shown is believed for its time: it would
// take as long again to learn.
func (s *Client) offers() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.greetings.known()
	if s.greetings.ended >= endsAtDiscover && known != nil {
		s.greetings.forget()
	}
	return known
}

// Signs reports that a server which does not answer server/discover is a legacy one (E-45), unless it
// has answered that before, and that one which ends at it may be, unless any of its processes has.
func (s *Client) Signs() upstream.Signs {
	s.mu.Lock()
	defer s.mu.Unlock()
	return upstream.Signs{Silence: s.child == nil || !s.child.modern.Load(), End: !s.answers.Load()}
}

// LegacyOffer asks a server that refused server/discover what it is. The
// handshake leaves the process in a legacy session, so it is ended afterwards, unless it refuses.
func (s *Client) LegacyOffer(ctx context.Context, _ *upstream.Call) negotiate.Offer {
	if known := s.offers(); known != nil {
		return negotiate.Offer{Versions: known}
	}
	req := &request{call: &upstream.Call{Method: mcp.MethodInitialize}, params: []byte(upstream.LegacyInitialize)}
	c, err := s.get(ctx, req.call)
	if err != nil { // the last one may have shown it
		return negotiate.Offer{Versions: s.offers()}
	}
	if c.speaks() { // meanwhile
		return negotiate.Offer{Late: true}
	}
	c.ours.Store(true) // others may be at it
	late := c.askedAgain(ctx)
	ans, _ := c.do(ctx, req, sink{})
	offer := negotiate.Offer{Versions: upstream.Offered(ans), Late: late()}
	if offer.Late {
		s.answers.Store(true)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if ans != nil && ans.Error != nil && len(offer.Versions) == 0 { // it is in no session: it may speak this era alone, once it is ready
		if s.child == c {
			c.ours.Store(false)
		}
		return offer
	}
	if s.child == c {
		s.child = nil
	}
	if len(offer.Versions) > 0 { // it came up, whatever it has ended at before
		s.delays.Reset()
		s.startAt = time.Time{}
	}
	c.ours.Store(true)
	c.stop()
	return offer
}
