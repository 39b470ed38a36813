package mount

import (
	"cmp"
	"context"
	"sync"

	"github.com/mcpbridge/bridge/bridge"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/relay"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// Command is a server that runs as a process.
type Command struct {
	Stdio upstream.StdioOptions // Drafts is filled in
	// PerSession gives each session a process of its own, at most so many; 0
	// shares one between all sessions (E-49).
	PerSession int
	// Children bounds the processes of clients that are handed to a server of
	// their own era, which has one client per process; 0: 32, or as many as
	// PerSession says, together with those.
	Children int
}

// places returns those for processes of single sessions.
func (c *Command) places() relay.Places {
	return make(relay.Places, cmp.Or(c.PerSession, c.Children, defaultChildren))
}

const defaultChildren = 32

// shared is the bridge in front of a process that all sessions share. A log
// message of the process does not say on whose behalf it was written, and may
// come when that request is over. So as soon as two sessions want such messages
// nobody gets them (C-8).
type shared struct {
	*bridge.Bridge
	logs *logGate
}

// Open implements downstream.Backend.
func (s *shared) Open(ctx context.Context, caller downstream.Caller, req jsonrpc.Message, push downstream.Pusher) (downstream.Conversation, []byte, error) {
	conv, result, err := s.Bridge.Open(ctx, caller, req, push)
	if err != nil {
		return nil, nil, err
	}
	return &listener{Conversation: conv, gate: s.logs}, result, nil
}

// listener is a conversation that may want log messages.
type listener struct {
	downstream.Conversation
	gate *logGate

	mu           sync.Mutex
	wants, ended bool
}

// Serve implements downstream.Conversation. The level counts before it is answered:
// from then on messages may come.
func (l *listener) Serve(ctx context.Context, caller downstream.Caller, req downstream.Request, out downstream.Reply) {
	if req.Method == mcp.MethodSetLevel {
		level, _ := rawjson.Text(req.Level)
		l.want(mcp.Severity(level) >= 0)
	}
	l.Conversation.Serve(ctx, caller, req, out)
}

func (l *listener) want(valid bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if valid && !l.wants && !l.ended {
		l.wants = true
		l.gate.enter()
	}
}

// Close implements downstream.Conversation.
func (l *listener) Close(cause error) {
	l.Conversation.Close(cause)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wants && !l.ended {
		l.gate.exit()
	}
	l.ended = true
}

// gated is a process's client that withholds log messages as the gate says.
type gated struct {
	upstream.Caller
	gate *logGate
}

var _ upstream.Wrapper = (*gated)(nil)

// Unwrap implements upstream.Wrapper.
func (g *gated) Unwrap() upstream.Caller { return g.Caller }

// Do implements upstream.Caller.
func (g *gated) Do(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
	if notify == nil {
		return g.Caller.Do(ctx, call, nil)
	}
	return g.Caller.Do(ctx, call, func(msg jsonrpc.Message) {
		if msg.Method == mcp.NotificationMessage && g.gate.crowded() {
			g.gate.log.Debug().Msg("a log message without a certain owner was withheld")
			return
		}
		notify(msg)
	})
}

// children is a backend in which each session has a process, and thus a bridge,
// of its own: nothing of one session can reach another. What has no session is
// served by the one bridge that is always there.
type children struct {
	*bridge.Bridge
	opt    Options
	places relay.Places

	mu     sync.Mutex
	ending sync.WaitGroup
	closed bool
}

func newChildren(common *bridge.Bridge, opt *Options, places relay.Places) *children {
	return &children{Bridge: common, opt: *opt, places: places}
}

// Open implements downstream.Backend: it starts a process for the session.
func (c *children) Open(ctx context.Context, caller downstream.Caller, req jsonrpc.Message, push downstream.Pusher) (downstream.Conversation, []byte, error) {
	release, err := c.acquire()
	if err != nil {
		return nil, nil, err
	}
	own, err := c.start()
	if err != nil {
		release()
		return nil, nil, err
	}
	conv, result, err := own.Open(ctx, caller, req, push)
	if err != nil {
		go own.end(release)
		return nil, nil, err
	}
	return &tenant{Conversation: conv, end: func() { go own.end(release) }}, result, nil
}

// acquire takes one of the places for processes. It is free again when the
// process has really ended.
func (c *children) acquire() (release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, bridge.ErrClosed
	}
	free, err := c.places.Take()
	if err != nil {
		return nil, err
	}
	c.ending.Add(1)
	return func() { free(); c.ending.Done() }, nil
}

// child is one process and the bridge in front of it.
type child struct {
	*bridge.Bridge
	process upstream.Caller
}

func (c *children) start() (*child, error) {
	process, err := upstream.NewStdio(c.opt.Command.Stdio)
	if err != nil {
		return nil, err
	}
	opt := c.opt.Bridge
	opt.Upstream = c.opt.Draft.Caller(process)
	opt.Prober = negotiate.NewProber(probeOptions(&c.opt))
	return &child{bridge.New(opt), process}, nil
}

func (c *child) end(release func()) {
	c.Bridge.Close()
	_ = c.process.Close()
	release()
}

// tenant is a conversation with a process of its own.
type tenant struct {
	downstream.Conversation
	once sync.Once
	end  func()
}

// Close implements downstream.Conversation. It does not wait for the process.
func (t *tenant) Close(cause error) {
	t.Conversation.Close(cause)
	t.once.Do(t.end)
}

// close waits for the processes of sessions that were closed before.
func (c *children) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.ending.Wait()
}
