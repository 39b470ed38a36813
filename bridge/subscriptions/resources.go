package subscriptions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// ackTimeout bounds how long a resources/subscribe waits for the server's
// acknowledgment.
const ackTimeout = 30 * time.Second

// uriRoom is how many bytes the URIs of a session may have on average: together so
// many times what the session may subscribe to.
const uriRoom = 1 << 10

// Why a subscription failed, besides what the server or the connection said.
var (
	ErrNotAccepted     = errors.New("the server does not accept a subscription to this resource")
	ErrNotAcknowledged = errors.New("the server did not acknowledge the subscription in time")
	ErrEnded           = errors.New("the server ended the subscription before it acknowledged it")
)

// TooMany is the refusal of a subscription that exceeds the session's limit.
type TooMany struct{ Limit int }

// Error names the bound.
func (e *TooMany) Error() string {
	return fmt.Sprintf("too many subscriptions in this session: there may be %d, whose URIs have %d bytes together", e.Limit, e.Limit*uriRoom)
}

// Resources is one session's resource subscriptions, carried by one listen at a
// time. It is not shared: an update may name a sub-resource of what was subscribed,
// so its owner could not be told from the URI (C-16). It is safe for concurrent use.
type Resources struct {
	hub     *Hub
	session Session
	as      Identity
	limit   int

	change sync.Mutex  // one change of the URI set at a time
	held   budget.Hold // of the URIs and the listen; guarded by change

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

// Resources returns the subscriptions of a session, none yet. It may have up to
// limit, whose URIs have 1 KiB on average.
func (h *Hub) Resources(s Session, as Identity, limit int) *Resources {
	return &Resources{hub: h, session: s, as: as, limit: limit, held: budget.On(as.Account)}
}

// Subscribe returns once the server acknowledged uri: an update between the answer
// and a later acknowledgment would be lost (C-15). The error is a *TooMany, a
// *jsonrpc.Error of the server, a *upstream.Failure, or one of those above.
func (r *Resources) Subscribe(authorization, uri string) error {
	r.change.Lock()
	defer r.change.Unlock()
	uris := r.subscribed()
	if slices.Contains(uris, uri) {
		return nil
	}
	bytes := len(uri)
	for _, other := range uris {
		bytes += len(other)
	}
	if len(uris) >= r.limit || bytes > r.limit*uriRoom {
		return &TooMany{r.limit}
	}
	if err := r.held.Grow(costOf(uri)); err != nil {
		return err
	}
	err := r.replace(authorization, append(slices.Clone(uris), uri), uri)
	if err != nil {
		r.chargeFor(uris)
	}
	return err
}

// Unsubscribe is idempotent.
func (r *Resources) Unsubscribe(authorization, uri string) {
	r.change.Lock()
	defer r.change.Unlock()
	uris := r.subscribed()
	i := slices.Index(uris, uri)
	if i < 0 {
		return
	}
	rest := slices.Delete(slices.Clone(uris), i, i+1)
	if len(rest) == 0 || r.replace(authorization, rest, "") != nil {
		r.swap(nil, rest) // without a listen rather than with one too many
	}
	r.chargeFor(rest)
}

// costOf returns what a subscription is charged for, in bytes: its URI is kept here, and
// in the request of a listen.
func costOf(uri string) int { return 2*len(uri) + 1<<10 }

// chargeFor has only these subscriptions charged, which are not more than before.
func (r *Resources) chargeFor(uris []string) {
	size := 0
	for _, uri := range uris {
		size += costOf(uri)
	}
	_ = r.held.Set(size) // less is never refused
}

// Subscribed returns the URIs, which nobody may change.
func (r *Resources) Subscribed() []string { return r.subscribed() }

// Restore subscribes to just what another process has subscribed to, and has the client
// look at all of it: there was a gap (C-20). It does not wait for the server; failed is
// told when that does not take the subscriptions.
func (r *Resources) Restore(authorization string, uris []string, failed func(error)) {
	r.mu.Lock()
	r.uris = uris
	r.mu.Unlock()
	for _, uri := range uris {
		r.as.Account.Charge(costOf(uri))
	}
	r.hub.wg.Go(func() {
		if err := r.restore(authorization, uris); err != nil {
			failed(err)
		}
	})
}

func (r *Resources) restore(authorization string, uris []string) error {
	r.change.Lock()
	defer r.change.Unlock()
	if len(uris) == 0 {
		r.swap(nil, nil)
		return nil
	}
	if err := r.replace(authorization, uris, ""); err != nil {
		return err
	}
	r.mu.Lock()
	current := r.current
	r.mu.Unlock()
	r.announceAll(current, uris)
	return nil
}

func (r *Resources) subscribed() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.uris
}

// replace makes the new listen before it breaks the old one (C-14). required
// names the URI that the acknowledgment must include; empty: none.
func (r *Resources) replace(authorization string, uris []string, required string) error {
	next := r.open(authorization, uris, required)
	r.await(next)
	timeout := time.NewTimer(ackTimeout)
	defer timeout.Stop()
	var err error
	select {
	case accepted := <-next.acked:
		if accepted {
			return nil
		}
		err = ErrNotAccepted
	case err = <-next.ended:
		if err == nil {
			err = ErrEnded
		}
	case <-timeout.C:
		if !r.giveUp(next) {
			return nil // acknowledged just now
		}
		err = ErrNotAcknowledged
	}
	next.cancel()
	return err
}

// giveUp makes a listen's acknowledgment come too late, and reports false when it
// has come already.
func (r *Resources) giveUp(s *resourceStream) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.late = r.current != s
	return s.late
}

// await lets the end of the session find a listen that is not acknowledged yet.
func (r *Resources) await(next *resourceStream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = next
	if r.closed {
		next.cancel()
	}
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
func (r *Resources) open(authorization string, uris []string, required string) *resourceStream {
	ctx, cancel := context.WithCancel(context.Background())
	s := &resourceStream{cancel: cancel, acked: make(chan bool, 1), ended: make(chan error, 1)}
	as := r.as
	as.Authorization = authorization
	keeper := &listener{
		hub:   r.hub,
		call:  as.listen(resourceFilter(uris)),
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
	r.hub.wg.Go(func() { keeper.run(ctx) })
	return s
}

func (r *Resources) isCurrent(s *resourceStream) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current == s && !r.closed
}

// deliver forwards an update, once: during an overlap from one listen only.
func (r *Resources) deliver(s *resourceStream, msg jsonrpc.Message) {
	switch {
	case msg.Method == mcp.NotificationElicitationComplete:
		r.session.ElicitationOver(msg.Params)
	case msg.Method == mcp.NotificationResourcesUpdated && r.isCurrent(s):
		r.hub.opt.Catalog.Invalidate(msg.Method, msg.Params)
		uri, _ := rawjson.Text(rawjson.Get(msg.Params, "uri"))
		r.session.Announce(msg.Method+" "+uri, msg.Method, msg.Params)
	}
}

// announceAll reports every subscribed resource after a gap (C-20).
func (r *Resources) announceAll(s *resourceStream, uris []string) {
	if !r.isCurrent(s) {
		return
	}
	const method = mcp.NotificationResourcesUpdated
	for _, uri := range uris {
		params := append(rawjson.AppendQuote([]byte(`{"uri":`), uri), '}')
		r.hub.opt.Catalog.Invalidate(method, params)
		r.session.Announce(method+" "+uri, method, params)
	}
}

// Close ends the listen, and refuses further ones. It does not wait.
func (r *Resources) Close() {
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
