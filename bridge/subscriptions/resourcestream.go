package subscriptions

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// overlap is for how long a listen is read on when another one has taken its place. What the server
// wrote to it before it acknowledged the other may come after that: each has a connection of its
// own, perhaps through proxies, and a packet that was lost twice comes again within a second.
const overlap = 2 * time.Second

// resourceStream is one listen with its fixed filter; a filter cannot be
// changed, only replaced (C-14).
type resourceStream struct {
	uris   []string
	cancel context.CancelFunc
	acked  chan bool  // acknowledged, with or without what was required
	ended  chan error // the listen ended before it was acknowledged

	// Guarded by mu of its owner.
	late   bool        // nobody waits for the acknowledgment any more
	down   bool        // it ended, and was not acknowledged again
	missed []string    // what was subscribed to, and nobody listened for when this one took over
	held   budget.Hold // of itself, while another one has its place
}

// begin starts a listen for uris, which has entered. Its events count while it is current and for
// overlap afterwards, and credentials once the server has taken them: what others have made up replaces none.
func (r *Resources) begin(authorization string, uris []string, required string) *resourceStream {
	ctx, cancel := context.WithCancel(r.life)
	s := &resourceStream{uris: uris, cancel: cancel, acked: make(chan bool, 1), ended: make(chan error, 1), held: budget.On(r.as.Account)}
	keeper := &listener{
		hub:   r.hub,
		call:  r.as.listen(resourceFilter(uris)),
		with:  &r.with,
		held:  budget.On(r.as.Account),
		event: func(msg jsonrpc.Message) { r.deliver(s, msg) },
		gap: func() {
			if r.isUp(s) {
				r.announceAll(uris)
			}
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
			r.swap(s, required) // on the listen's own goroutine: before its first event
		}
		s.acked <- accepted
	}
	keeper.ended = func(err error) bool {
		again := r.isDown(s, err)
		if !once {
			s.ended <- err
		}
		return once && again
	}
	if !r.hub.work.Go(func() {
		defer r.hub.exit(r)
		keeper.run(ctx, authorization)
		r.isOver(s)
	}) {
		r.hub.exit(r)
		s.ended <- nil
	}
	return s
}

// swap makes next the current listen, unless it has been given up, by which a resource is subscribed to; "": none is. What
// else was subscribed to or left meanwhile, at another replica, stays so. The listen before is read on for
// overlap, if there is anything to be read, and if anybody hears it.
func (r *Resources) swap(next *resourceStream, gained string) {
	r.mu.Lock()
	if next != nil && next.late {
		r.mu.Unlock()
		return
	}
	old := r.current
	heard := old != nil && !old.down
	if next != nil && !heard {
		next.missed = r.uris // changes of them (C-20)
	}
	lasts := next != nil && heard
	if lasts {
		r.before = old
		old.held.Charge(costOf(old.uris))
	}
	r.current = next
	if gained != "" {
		r.uris = changed(r.uris, []string{gained}, nil)
	}
	r.mu.Unlock()
	switch {
	case lasts:
		time.AfterFunc(overlap, func() { r.leave(old) })
	case old != nil:
		r.cut(old)
	}
}

// leave ends a listen whose overlap is over.
func (r *Resources) leave(s *resourceStream) {
	r.mu.Lock()
	if r.before == s {
		r.before = nil
	}
	r.mu.Unlock()
	s.cancel()
}

// makeWay ends the listen before the current one, before another begins: however fast the set changes,
// there are two at most. What it might still have said is owed.
func (r *Resources) makeWay() {
	r.mu.Lock()
	s := r.before
	r.before = nil
	r.mu.Unlock()
	if s != nil {
		r.cut(s)
		r.owe(s.uris)
	}
}

// cut ends a listen that is not read to its end: what it might have made stale is.
func (r *Resources) cut(s *resourceStream) {
	s.cancel()
	for _, uri := range s.uris {
		r.hub.opt.Catalog.Invalidate(mcp.NotificationResourcesUpdated, aboutURI(uri))
	}
}

// owe has the session told, soon, that these may have changed: once for all changes of the set that
// follow one another, else a client that subscribes to many heard of each of them again and again.
func (r *Resources) owe(uris []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owed == nil {
		r.owed = make(map[string]bool)
		time.AfterFunc(overlap, r.settle)
	}
	for _, uri := range uris {
		r.owed[uri] = true
	}
}

// settle tells what is owed.
func (r *Resources) settle() {
	r.mu.Lock()
	owed := slices.DeleteFunc(slices.Clone(r.uris), func(uri string) bool { return !r.owed[uri] })
	r.owed = nil
	r.mu.Unlock()
	r.announceAll(owed)
}

// isDown notes that a listen ended with err, and reports whether it is to be opened again: not where
// another one has its place. What that one broke off with is owed.
func (r *Resources) isDown(s *resourceStream, err error) (again bool) {
	r.mu.Lock()
	s.down = true
	again = r.before != s
	if !again {
		r.before = nil
	}
	r.mu.Unlock()
	if !again && err != nil {
		r.owe(s.uris)
	}
	return again
}

// isUp notes that a listen which was down was acknowledged again, and reports whether it counts.
func (r *Resources) isUp(s *resourceStream) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.down = false
	return r.countsLocked(s)
}

// isOver gives back what a listen is charged for.
func (r *Resources) isOver(s *resourceStream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.held.Release()
}

// missed returns what is subscribed to, and nobody listened for when the current listen began.
func (r *Resources) missed() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current == nil {
		return nil
	}
	return r.current.missed
}

func (r *Resources) counts(s *resourceStream) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.countsLocked(s)
}

func (r *Resources) countsLocked(s *resourceStream) bool { return s == r.current || s == r.before }

// isLeft reports whether a listen is for a resource that is subscribed to no more, or says this of a part of
// one, and of none that still is.
func (r *Resources) isLeft(s *resourceStream, uri string) bool {
	subscribed := r.subscribed()
	about := func(whole string) bool { return strings.HasPrefix(uri, whole) }
	left := func(whole string) bool { return about(whole) && !slices.Contains(subscribed, whole) }
	return slices.ContainsFunc(s.uris, left) && !slices.ContainsFunc(subscribed, about)
}

// deliver forwards an update. During an overlap the client may hear of one twice: the server says it on both.
func (r *Resources) deliver(s *resourceStream, msg jsonrpc.Message) {
	switch {
	case msg.Method == mcp.NotificationElicitationComplete:
		r.session.ElicitationOver(elicitationID(msg.Params))
	case msg.Method == mcp.NotificationResourcesUpdated && r.life.Err() == nil && r.counts(s):
		uri, _ := rawjson.Name(rawjson.Get(msg.Params, "uri"))
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

// announceAll reports after a gap each of these resources that is subscribed to (C-20).
func (r *Resources) announceAll(uris []string) {
	if len(uris) == 0 || r.life.Err() != nil {
		return
	}
	const method = mcp.NotificationResourcesUpdated
	subscribed := make(map[string]bool)
	for _, uri := range r.subscribed() {
		subscribed[uri] = true
	}
	for _, uri := range uris {
		params := aboutURI(uri)
		r.hub.opt.Catalog.Invalidate(method, params)
		if subscribed[uri] {
			r.session.Announce(method+" "+uri, method, params)
		}
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
		if text, _ := rawjson.Name(element); text == uri {
			return true
		}
	}
	return false
}
