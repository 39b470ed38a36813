package mount

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/bridge/bridge"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// shared is the bridge in front of a process that all sessions share. A log
// message of the process does not say on whose behalf it was written, and may
// come when that request is over (C-8).
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
	return s.listening(conv), result, nil
}

// Restore implements downstream.Backend.
func (s *shared) Restore(ctx context.Context, caller, by downstream.Caller, record []byte, push downstream.Pusher) (downstream.Conversation, error) {
	conv, err := s.Bridge.Restore(ctx, caller, by, record, push)
	if err != nil {
		return nil, err
	}
	l := s.listening(conv)
	l.wants.Store(bridge.WantsLogs(record))
	return l, nil
}

func (s *shared) listening(conv downstream.Conversation) *listener {
	name := "session " + strconv.FormatUint(s.logs.serial.Add(1), 10) // no modern caller is called so
	return &listener{Conversation: conv, gate: s.logs, name: name}
}

// listener is a conversation that may want log messages.
type listener struct {
	downstream.Conversation
	gate  *logGate
	name  string
	wants atomic.Bool
}

// Serve implements downstream.Conversation. The level counts before it is answered:
// from then on messages may come, to the session's requests.
func (l *listener) Serve(ctx context.Context, caller downstream.Caller, req downstream.Request, out downstream.Reply) {
	switch {
	case req.Method == mcp.MethodSetLevel:
		if level, _ := rawjson.Text(req.Level); mcp.Severity(level) >= 0 {
			l.wants.Store(true)
		}
	case l.wants.Load():
		_, done := l.gate.visit(l.name)
		out = &visit{Reply: out, done: sync.OnceFunc(done)}
	}
	l.Conversation.Serve(ctx, caller, req, out)
}

// Close implements downstream.Conversation.
func (l *listener) Close(cause error) {
	l.Conversation.Close(cause)
	l.gate.forget(l.name)
}

// visit is the Reply of a request that may bring log messages, until its end.
type visit struct {
	downstream.Reply
	done func()
}

// Finish implements downstream.Reply.
func (v *visit) Finish(msg downstream.Message) {
	v.done()
	v.Reply.Finish(msg)
}

// Refuse implements downstream.Reply.
func (v *visit) Refuse(r *downstream.Refusal) bool {
	refused := v.Reply.Refuse(r)
	if refused {
		v.done()
	}
	return refused
}

// Abandon implements downstream.Reply.
func (v *visit) Abandon() {
	v.done()
	v.Reply.Abandon()
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
