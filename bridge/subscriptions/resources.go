package subscriptions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/inorder"
	"github.com/mcpbridge/bridge/mcp"
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
	limit   int
	with    credentials

	open  int    // listens, until they have ended; guarded by hub.mu
	place *place // while there is any; guarded by hub.mu

	life context.Context // of the session
	end  context.CancelFunc

	turns   inorder.Chain // of changes that its client asked for
	change  sync.Mutex    // one change of the URI set at a time
	as      Identity      // guarded by change
	held    budget.Hold   // of the URIs and the listen; guarded by change
	mending bool          // a listen is being tried again; guarded by change

	mu      sync.Mutex
	uris    []string        // what is subscribed to, here or at another replica; it may change during a change
	current *resourceStream // nil: none; perhaps of other URIs, where there could be none of these yet
	before  *resourceStream // whose place it took, and which is read on for overlap; nil: none
	owed    map[string]bool // what the session is told of soon, since it may have changed unheard
}

// Resources returns the subscriptions of a session, none yet. It may have up to
// limit, whose URIs have 1 KiB on average.
func (h *Hub) Resources(s Session, as Identity, limit int) *Resources {
	r := &Resources{hub: h, session: s, as: as, limit: limit, held: budget.On(as.Account)}
	r.life, r.end = context.WithCancel(context.Background())
	return r
}

// InTurn waits until the changes that the client asked for before have been made. It passes for the request as soon as
// its own place is taken: the server may take its time to acknowledge one. done is called when the change is made.
func (r *Resources) InTurn(of *inorder.Link) (done func()) {
	var turn inorder.Link
	r.turns.Add(&turn)
	of.Pass()
	<-turn.Time()
	return turn.Pass
}

// Subscribe returns once the server acknowledged uri: an update between the answer
// and a later acknowledgment would be lost (C-15). party is whose share of the listens it
// takes. The error is a *TooMany, ErrNoPlace, a *jsonrpc.Error of the server, a
// *upstream.Failure, one of those above, or one of package budget.
func (r *Resources) Subscribe(party, authorization, uri string) error {
	r.change.Lock()
	defer r.change.Unlock()
	r.as.Party = party
	if r.hears(uri) {
		return nil
	}
	uris := r.subscribed()
	all := changed(uris, []string{uri}, nil)
	bytes := 0
	for _, each := range all {
		bytes += len(each)
	}
	if len(all) > r.limit || bytes > r.limit*uriRoom {
		return &TooMany{r.limit}
	}
	if err := r.held.Set(costOf(all)); err != nil {
		return err
	}
	err := r.replace(authorization, all, uri)
	if err != nil {
		r.chargeFor(uris)
		return err
	}
	r.hub.opt.Catalog.Invalidate(mcp.NotificationResourcesUpdated, aboutURI(uri)) // nobody listened for it before
	r.announceAll(r.missed())
	return nil
}

// Unsubscribe is idempotent. Where the server does not take a listen for the others now, the one
// before goes on until it does.
func (r *Resources) Unsubscribe(uri string) {
	r.change.Lock()
	defer r.change.Unlock()
	uris := r.subscribed()
	if !slices.Contains(uris, uri) {
		return
	}
	rest := changed(uris, nil, []string{uri})
	r.chargeFor(rest)
	r.mu.Lock()
	r.uris = rest
	r.mu.Unlock()
	if len(rest) == 0 {
		r.endAll()
		return
	}
	if tried, err := r.renewed(rest); err != nil {
		r.hub.work.Go(func() { r.mend(tried, err) })
		return
	}
	r.announceAll(r.missed())
}

// costOf returns what subscriptions are charged for, in bytes: a listen, and each URI, which
// is kept here, and in the request of the listen.
func costOf(uris []string) int {
	if len(uris) == 0 {
		return 0
	}
	size := listenCost
	for _, uri := range uris {
		size += 2*len(uri) + 1<<10
	}
	return size
}

// chargeFor has just these subscriptions charged. They are not more than before, or are
// kept already: they cannot be refused.
func (r *Resources) chargeFor(uris []string) {
	r.held.Release()
	r.held.Charge(costOf(uris))
}

// Renew has what listens go on with newer credentials.
func (r *Resources) Renew(authorization string) { r.with.offer(authorization) }

// Subscribed returns the URIs, which nobody may change.
func (r *Resources) Subscribed() []string { return r.subscribed() }

// Restore takes up what another process has subscribed to, gained, and leaves what it has
// left, lost; the client is to look at all that there is then: there was a gap (C-20). It
// does not wait for the server; failed is told when that does not take the subscriptions, and
// then it is tried again.
func (r *Resources) Restore(authorization string, gained, lost []string, failed func(error)) {
	r.mu.Lock()
	uris := changed(r.uris, gained, lost)
	same := slices.Equal(uris, r.uris)
	r.uris = uris
	r.mu.Unlock()
	if same {
		return
	}
	r.with.offer(authorization)
	r.hub.work.Go(func() { // if there is still a hub
		if tried, err := r.restore(); err != nil {
			failed(err)
			r.mend(tried, err)
		}
	})
}

// restore listens for what there is by now: a change that was under way knew nothing of this one.
func (r *Resources) restore() (tried string, err error) {
	r.change.Lock()
	defer r.change.Unlock()
	uris := r.subscribed()
	r.chargeFor(uris)
	return r.listenFor(uris)
}

// listenFor has a listen for just these, after a gap. Whoever asks for it holds change.
func (r *Resources) listenFor(uris []string) (tried string, err error) {
	if len(uris) == 0 {
		r.endAll()
		return "", nil
	}
	if current := r.listens(); current != nil && slices.Equal(current.uris, uris) {
		return "", nil
	}
	if tried, err = r.renewed(uris); err == nil {
		r.announceAll(uris)
	}
	return tried, err
}

// renewed is replace for no request, with the newest credentials, which it returns.
func (r *Resources) renewed(uris []string) (tried string, err error) {
	tried = r.with.newest()
	return tried, r.replace(tried, uris, "")
}

// mend opens the listen that has failed with err, when one that ended would be opened
// again (C-19). One at a time does so for all changes.
func (r *Resources) mend(tried string, err error) {
	r.change.Lock()
	busy := r.mending
	r.mending = true
	r.change.Unlock()
	if busy {
		return
	}
	r.hub.running.Add(1)
	defer r.hub.running.Add(-1)
	keeper, wait := &listener{hub: r.hub, with: &r.with}, pauses()
	for err != nil && keeper.pause(r.life, err, tried, wait.NextBackOff()) {
		tried, err = r.again()
	}
}

// again is one try of mend.
func (r *Resources) again() (tried string, err error) {
	r.change.Lock()
	defer r.change.Unlock()
	tried, err = r.listenFor(r.subscribed())
	r.mending = err != nil
	return tried, err
}

// changed returns uris with what was gained and without what was lost.
func changed(uris, gained, lost []string) []string {
	all := slices.DeleteFunc(slices.Clone(uris), func(uri string) bool { return slices.Contains(lost, uri) })
	for _, uri := range gained {
		if !slices.Contains(all, uri) {
			all = append(all, uri)
		}
	}
	return all
}

func (r *Resources) subscribed() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.uris
}

// listens returns the listen that is the current one; nil: there is none.
func (r *Resources) listens() *resourceStream {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current
}

// hears reports whether a resource is subscribed to and listened for.
func (r *Resources) hears(uri string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current != nil && slices.Contains(r.current.uris, uri) && slices.Contains(r.uris, uri)
}

// endAll ends what listens when nothing is subscribed to any more.
func (r *Resources) endAll() {
	r.makeWay()
	r.swap(nil, "")
}

// replace makes the new listen before it breaks the old one (C-14). required
// names the URI that the acknowledgment must include; empty: none.
func (r *Resources) replace(authorization string, uris []string, required string) error {
	r.makeWay()
	if !r.hub.enter(r, r.as.Party) {
		return ErrNoPlace
	}
	next := r.begin(authorization, uris, required)
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

// Close ends the listen, and refuses further ones. It does not wait.
func (r *Resources) Close() { r.end() }
