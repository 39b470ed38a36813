package bridge

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// ackTimeout bounds how long a resources/subscribe waits for the server's
// acknowledgment.
const ackTimeout = 30 * time.Second

// resourceListen is one session's resource subscriptions, carried by one listen
// at a time. It is not shared: an update may name a sub-resource of what was
// subscribed, so its owner could not be told from the URI (C-16).
type resourceListen struct {
	conv *conversation

	change sync.Mutex // one change of the URI set at a time

	mu      sync.Mutex
	uris    []string
	current *resourceStream
	pending *resourceStream // opened last, perhaps not acknowledged yet
	closed  bool
}

// resourceStream is one listen with its fixed filter; a filter cannot be
// changed, only replaced (C-14).
type resourceStream struct {
	cancel context.CancelFunc
	late   bool       // nobody waits for the acknowledgment any more; guarded by mu of its owner
	acked  chan bool  // acknowledged, with or without what was required
	ended  chan error // the listen ended before it was acknowledged
}

func (c *conversation) resourceListen() *resourceListen {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resources == nil {
		c.resources = &resourceListen{conv: c, closed: c.closed}
	}
	return c.resources
}

// subscribe returns once the server acknowledged uri: an update between the
// answer and a later acknowledgment would be lost (C-15).
func (r *resourceListen) subscribe(caller downstream.Caller, uri string) *jsonrpc.Error {
	r.change.Lock()
	defer r.change.Unlock()
	uris := r.subscribed()
	if slices.Contains(uris, uri) {
		return nil
	}
	if limit := r.conv.b.limits.Subscriptions; len(uris) >= limit {
		return internalError("too many subscriptions in this session", []rawjson.Edit{quoted("limit", "limits.subscriptions")})
	}
	return r.replace(caller, append(slices.Clone(uris), uri), uri)
}

func (r *resourceListen) unsubscribe(caller downstream.Caller, uri string) {
	r.change.Lock()
	defer r.change.Unlock()
	uris := r.subscribed()
	i := slices.Index(uris, uri)
	if i < 0 {
		return
	}
	rest := slices.Delete(slices.Clone(uris), i, i+1)
	if len(rest) == 0 || r.replace(caller, rest, "") != nil {
		r.swap(nil, rest) // without a listen rather than with one too many
	}
}

func (r *resourceListen) subscribed() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.uris
}

// replace makes the new listen before it breaks the old one (C-14). required
// names the URI that the acknowledgment must include; empty: none.
func (r *resourceListen) replace(caller downstream.Caller, uris []string, required string) *jsonrpc.Error {
	next := r.open(caller, uris, required)
	r.await(next)
	timeout := time.NewTimer(ackTimeout)
	defer timeout.Stop()
	var err *jsonrpc.Error
	select {
	case accepted := <-next.acked:
		if accepted {
			return nil
		}
		err = invalidParams("the server does not accept a subscription to this resource")
	case cause := <-next.ended:
		err = r.failed(cause)
	case <-timeout.C:
		if !r.giveUp(next) {
			return nil // acknowledged just now
		}
		err = internalError("the server did not acknowledge the subscription in time", nil)
	}
	next.cancel()
	return err
}

// giveUp makes a listen's acknowledgment come too late, and reports false when it
// has come already.
func (r *resourceListen) giveUp(s *resourceStream) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.late = r.current != s
	return s.late
}

// await lets the end of the session find a listen that is not acknowledged yet.
func (r *resourceListen) await(next *resourceStream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = next
	if r.closed {
		next.cancel()
	}
}

// failed words why a listen ended before it was acknowledged (F.2).
func (r *resourceListen) failed(cause error) *jsonrpc.Error {
	var failure *upstream.Failure
	if errors.As(cause, &failure) {
		return describe(failure)
	}
	var refused *jsonrpc.Error
	if errors.As(cause, &refused) {
		_, refused = r.conv.rules.Error(mcp.MethodResourcesSubscribe, nil, refused)
		return refused
	}
	return internalError("the server ended the subscription before it acknowledged it", nil)
}

// swap makes next the listen whose events count and ends the one before, unless
// next has been given up.
func (r *resourceListen) swap(next *resourceStream, uris []string) {
	r.mu.Lock()
	if next != nil && next.late {
		r.mu.Unlock()
		return
	}
	old := r.current
	r.current, r.uris = next, uris
	closed := r.closed
	r.mu.Unlock()
	if old != nil {
		old.cancel()
	}
	if closed && next != nil {
		next.cancel()
	}
}

// open starts a listen for uris. Its events count only while it is current.
func (r *resourceListen) open(caller downstream.Caller, uris []string, required string) *resourceStream {
	ctx, cancel := context.WithCancel(context.Background())
	s := &resourceStream{cancel: cancel, acked: make(chan bool, 1), ended: make(chan error, 1)}
	call := r.conv.listenCall(resourceFilter(uris))
	call.Authorization = caller.Authorization
	keeper := &listener{
		up:    r.conv.b.opt.Upstream,
		log:   r.conv.b.log,
		call:  call,
		event: func(msg jsonrpc.Message) { r.deliver(s, msg) },
		gap:   func() { r.announceAll(s, uris) },
	}
	once := false
	keeper.acked = func(filter []byte) {
		if once {
			return
		}
		once = true
		accepted := required == "" || acknowledges(filter, required)
		if accepted {
			r.swap(s, uris) // on the listen's own goroutine: before its first event
		}
		s.acked <- accepted
	}
	keeper.ended = func(err error) bool {
		if !once {
			s.ended <- err
		}
		return once
	}
	r.conv.b.background(func() { keeper.run(ctx) })
	return s
}

func (r *resourceListen) isCurrent(s *resourceStream) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current == s && !r.closed
}

// deliver forwards an update, once: during an overlap from one listen only.
func (r *resourceListen) deliver(s *resourceStream, msg jsonrpc.Message) {
	if r.conv.elicitationOver(msg) || msg.Method != mcp.NotificationResourcesUpdated || !r.isCurrent(s) {
		return
	}
	r.conv.b.catalog.Invalidate(msg.Method, msg.Params)
	uri, _ := rawjson.Text(rawjson.Get(msg.Params, "uri"))
	r.conv.pushed(msg.Method+" "+uri, msg.Method, msg.Params)
}

// announceAll reports every subscribed resource after a gap (C-20).
func (r *resourceListen) announceAll(s *resourceStream, uris []string) {
	if !r.isCurrent(s) {
		return
	}
	for _, uri := range uris {
		params := append(rawjson.AppendQuote([]byte(`{"uri":`), uri), '}')
		r.conv.b.catalog.Invalidate(mcp.NotificationResourcesUpdated, params)
		r.conv.pushed(mcp.NotificationResourcesUpdated+" "+uri, mcp.NotificationResourcesUpdated, params)
	}
}

func (r *resourceListen) close() {
	r.mu.Lock()
	r.closed = true
	streams := [...]*resourceStream{r.current, r.pending}
	r.mu.Unlock()
	for _, s := range streams {
		if s != nil {
			s.cancel()
		}
	}
}

func resourceFilter(uris []string) []byte {
	out := []byte(`{"resourceSubscriptions":[`)
	for i, uri := range uris {
		if i > 0 {
			out = append(out, ',')
		}
		out = rawjson.AppendQuote(out, uri)
	}
	return append(out, "]}"...)
}

func acknowledges(filter []byte, uri string) bool {
	for element := range rawjson.Elements(rawjson.Get(filter, "resourceSubscriptions")) {
		if text, _ := rawjson.Text(element); text == uri {
			return true
		}
	}
	return false
}
