package subscriptions

import (
	"context"
	"slices"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// resourceStream is one listen with its fixed filter; a filter cannot be
// changed, only replaced (C-14).
type resourceStream struct {
	uris   []string
	cancel context.CancelFunc
	late   bool       // nobody waits for the acknowledgment any more; guarded by mu of its owner, as is down
	down   bool       // it ended, and was not acknowledged again
	acked  chan bool  // acknowledged, with or without what was required
	ended  chan error // the listen ended before it was acknowledged
}

// begin starts a listen for uris, which has entered. Its events count only while it is
// current, and credentials once the server has taken them: what others have made up replaces none.
func (r *Resources) begin(authorization string, uris []string, required string) *resourceStream {
	ctx, cancel := context.WithCancel(r.life)
	s := &resourceStream{uris: uris, cancel: cancel, acked: make(chan bool, 1), ended: make(chan error, 1)}
	keeper := &listener{
		hub:   r.hub,
		call:  r.as.listen(resourceFilter(uris)),
		with:  &r.with,
		held:  budget.On(r.as.Account),
		event: func(msg jsonrpc.Message) { r.deliver(s, msg) },
		gap: func() {
			r.isDown(s, false)
			r.announceAll(s, uris)
		},
	}
	once := false
	keeper.acked = func(filter []byte) {
		if once {
			return
		}
		once = true
		accepted := required == "" || acknowledges(filter, required)
		if accepted {
			r.with.offer(authorization)
			r.swap(s, uris) // on the listen's own goroutine: before its first event
		}
		s.acked <- accepted
	}
	keeper.ended = func(err error) bool {
		r.isDown(s, true)
		if !once {
			s.ended <- err
		}
		return once
	}
	if !r.hub.work.Go(func() {
		defer r.hub.exit(r)
		keeper.run(ctx, authorization)
	}) {
		r.hub.exit(r)
		s.ended <- nil
	}
	return s
}

// swap makes next the listen whose events count and ends the one before, unless
// next has been given up.
func (r *Resources) swap(next *resourceStream, uris []string) {
	r.mu.Lock()
	if next != nil && next.late {
		r.mu.Unlock()
		return
	}
	old := r.current
	r.current, r.uris = next, uris
	r.mu.Unlock()
	if old != nil {
		old.cancel()
	}
}

// isDown notes whether a listen is down.
func (r *Resources) isDown(s *resourceStream, down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.down = down
}

// unheard returns what is subscribed to, and nobody listens for: whatever listens for it next has missed
// changes (C-20).
func (r *Resources) unheard() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current != nil && !r.current.down {
		return nil
	}
	return r.uris
}

func (r *Resources) isCurrent(s *resourceStream) bool {
	return r.listens() == s && r.life.Err() == nil
}

// isLeft reports whether a listen is for a resource that is subscribed to no more.
func (r *Resources) isLeft(s *resourceStream, uri string) bool {
	return slices.Contains(s.uris, uri) && !slices.Contains(r.subscribed(), uri)
}

// deliver forwards an update, once: during an overlap from one listen only.
func (r *Resources) deliver(s *resourceStream, msg jsonrpc.Message) {
	switch {
	case msg.Method == mcp.NotificationElicitationComplete:
		r.session.ElicitationOver(elicitationID(msg.Params))
	case msg.Method == mcp.NotificationResourcesUpdated && r.isCurrent(s):
		uri, _ := rawjson.Text(rawjson.Get(msg.Params, "uri"))
		r.hub.opt.Catalog.Invalidate(msg.Method, msg.Params)
		if r.isLeft(s, uri) {
			return
		}
		if len(uri) > maxAnnounced && !slices.Contains(r.subscribed(), uri) {
			if missed, ok := r.hub.long.due(); ok {
				r.hub.opt.Log.Warn().Int("bytes", len(uri)).Int("before", missed).Msg("the server announced a resource whose URI is too long, and that nobody had named; its client is not told")
			}
			return
		}
		r.session.Announce(msg.Method+" "+uri, msg.Method, updated(uri, msg.Params))
	}
}

// announceAll reports every subscribed resource after a gap (C-20).
func (r *Resources) announceAll(s *resourceStream, uris []string) {
	if !r.isCurrent(s) {
		return
	}
	const method = mcp.NotificationResourcesUpdated
	for _, uri := range uris {
		params := aboutURI(uri)
		r.hub.opt.Catalog.Invalidate(method, params)
		r.session.Announce(method+" "+uri, method, params)
	}
}

// giveUp makes a listen's acknowledgment come too late, and reports false when it
// has come already.
func (r *Resources) giveUp(s *resourceStream) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.late = r.current != s
	return s.late
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
