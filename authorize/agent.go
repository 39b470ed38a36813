package authorize

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Agent is signed in to one server, or knows how to be. It is safe for concurrent
// use, and shares what it has with the agents of other processes.
type Agent struct {
	opt   Options
	store *store
	login atomic.Pointer[Login] // the newest that is known here; nil: none

	useless atomic.Pointer[useless] // what came last instead of a login that is of use; nil: there is one

	mu      sync.Mutex
	renewal *renewal      // the newest; nil: none
	attempt *attempt      // under way, or the one that follows it; nil: none
	signed  chan struct{} // closed at the next sign-in

	ctx  context.Context // ends with Close
	stop context.CancelFunc
	work sync.WaitGroup
}

// New returns an agent. It reads what is kept, and asks nobody for anything yet.
func New(opt Options) (*Agent, error) {
	if err := opt.defaults(); err != nil {
		return nil, err
	}
	if err := CheckClientKey(opt.ClientKey); err != nil {
		return nil, err
	}
	store, err := newStore(&opt)
	if err != nil {
		return nil, err
	}
	a := &Agent{opt: opt, store: store, signed: make(chan struct{})}
	a.ctx, a.stop = context.WithCancel(context.Background())
	if l, err := store.load(); err == nil {
		a.login.Store(l)
	}
	return a, nil
}

// CheckClientKey reports why a client could not be proved with a key; there need be none.
func CheckClientKey(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	if _, _, err := signingKey(text); err != nil {
		return failf(err, "auth.client-key cannot be used: %v", err)
	}
	return nil
}

// Close ends a sign-in that is under way here. Another process, or a later one,
// can finish it.
func (a *Agent) Close() {
	a.mu.Lock() // nothing begins from now on
	a.stop()
	a.mu.Unlock()
	a.work.Wait()
	a.opt.Resources.CloseIdleConnections()
	a.opt.Issuers.CloseIdleConnections()
}

// Authorization returns the header to send with a request, empty when there is
// nothing to send: then the server's refusal says what it wants. A token that is
// about to expire is renewed first; where that takes longer, those whose token is still
// good do not wait for it.
func (a *Agent) Authorization(ctx context.Context) (string, error) {
	l := a.login.Load()
	now := time.Now()
	if l == nil || l.Access == "" || l.fresh(now) {
		return l.header(), nil
	}
	if !l.valid(now) {
		next, err := a.refresh(ctx, l.Access)
		return next.header(), err
	}
	r, began := a.renew(l.Access)
	if began {
		ctx, cancel := context.WithTimeout(ctx, prompt)
		defer cancel()
		select {
		case <-r.done:
		case <-ctx.Done():
		}
	}
	if r.over() && r.err == nil {
		return r.login.header(), nil
	}
	return l.header(), nil
}

// Login returns the login that is known at present, nil without one.
func (a *Agent) Login() *Login { return a.login.Load() }

// refresh waits for the renewal of a token that is no good. It returns the newest
// login, which has no token when the person has to sign in again.
func (a *Agent) refresh(ctx context.Context, used string) (*Login, error) {
	r, _ := a.renew(used)
	select {
	case <-r.done:
		return r.login, r.err
	case <-ctx.Done():
		return nil, a.slow(ctx.Err())
	}
}

// slow is told to who does not wait any longer for a renewal.
func (a *Agent) slow(err error) *Failure {
	return passing(err, "the login of %s is being renewed, and the authorization server has not answered yet; nothing was lost, try again in a moment", a.opt.host())
}

// renew returns the renewal of a token that is under way, or has failed just now, or begins one. After one that
// failed slowly nobody tries again for as long as it took: an authorization server that hangs
// has the same refresh token often enough, and may come to see it as stolen.
func (a *Agent) renew(used string) (r *renewal, began bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.renewal.stands(used) {
		return a.renewal, false
	}
	r = &renewal{used: used, done: make(chan struct{})}
	if a.ctx.Err() != nil {
		r.run(func() (*Login, error) { return nil, failf(nil, "the bridge is stopping") })
		return r, false
	}
	a.renewal = r
	a.work.Go(func() {
		r.run(func() (*Login, error) {
			l, err := a.trade(used)
			if err != nil {
				a.opt.Log.Warn().Err(err).Msg("the login could not be renewed yet")
			}
			return l, err
		})
	})
	return r, true
}

// trade replaces a token that is or will be no good, by what another process has got
// meanwhile, else with its refresh token, which may be good for one use. Hence a person's is not used
// while what it brings could not be kept: the login is written once more first.
func (a *Agent) trade(used string) (*Login, error) {
	if l := a.login.Load(); l != nil && l.Access != used && l.fresh(time.Now()) {
		return l, nil
	}
	unlock, err := a.store.lock(a.ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	l, err := a.store.load()
	if err != nil {
		return nil, err
	}
	if l == nil || l.Access != used && l.fresh(time.Now()) || l.Refresh == "" {
		if l != nil && l.Refresh == "" && l.Access == used {
			l = l.bare(true) // it is over, and nothing can be done about it
		}
		a.login.Store(l)
		return l, nil
	}
	if err := a.store.save(l); err != nil && !a.alone() {
		return nil, passing(err, "%v; nothing was lost: the login of %s is renewed when that goes again", err, a.opt.host())
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), RequestTimeout)
	defer cancel()
	next, refused := a.redeemRefresh(ctx, l)
	if next == nil {
		return nil, refused
	}
	if err := a.store.save(next); err != nil { // the disk has become full meanwhile
		a.opt.Log.Warn().Err(err).Msg("the renewed login is in memory only until it can be kept")
		a.store.hold(next, l)
	}
	a.login.Store(next)
	return next, refused
}

// redeemRefresh trades a refresh token for new tokens. One that is refused is
// dropped, and so is a client that the authorization server has forgotten;
// whatever may pass by itself loses nothing: nor does a new token of no use, beside
// which the refresh token may be a new one, too.
func (a *Agent) redeemRefresh(ctx context.Context, l *Login) (*Login, error) {
	token, err := a.exchange(ctx, l.TokenEndpoint, l.Issuer, &l.Client, grantRefresh, url.Values{
		"refresh_token": {l.Refresh}, "resource": {a.parameter(l.Resource)},
	})
	switch codeOf(err) {
	case "invalid_grant":
		return l.bare(true), nil
	case "invalid_client", "unauthorized_client":
		return l.bare(false), nil
	}
	if err != nil {
		return nil, refusedToken(l.Issuer, err)
	}
	next, err := a.take(*l, token)
	if errors.Is(err, errStillborn) {
		kept := *l
		kept.Refresh = next.Refresh
		return &kept, err
	}
	return next, err
}

// adopt makes a login the present one, and tells whoever wants to know if it can
// do more than the one before.
func (a *Agent) adopt(l *Login) {
	before := a.login.Swap(l)
	if before != nil && before.Active && covers(before.Granted, l.Granted) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.signed)
	a.signed = make(chan struct{})
}

// Renew gets other credentials than those that the server refused, if need be from
// the person. nil means: send the request again. While ctx lasts it waits; then
// it returns a *Pending, and the sign-in goes on. Any other error is a *Failure; one that
// is Passing may say that a renewal, which needs nobody, goes on.
func (a *Agent) Renew(ctx context.Context, refused Refusal) error {
	return a.mend(ctx, &refused, func(*attempt) <-chan struct{} { return nil })
}

// Invite is Renew for whoever shows the page to the person: it does not wait for that,
// but returns a *Pending as soon as there is one.
func (a *Agent) Invite(ctx context.Context, refused Refusal) error {
	refused.Shown = true
	return a.mend(ctx, &refused, (*attempt).told)
}

// mend waits for the attempt that a refusal makes necessary: to its end, until enough
// says that this will do, or as long as ctx lasts.
func (a *Agent) mend(ctx context.Context, refused *Refusal, enough func(*attempt) <-chan struct{}) error {
	if !refused.Mendable() {
		return failf(nil, "%s does not allow this with your account (HTTP %d)", a.opt.host(), refused.Status)
	}
	try := a.join(refused)
	if try == nil {
		return failf(nil, "the bridge is stopping")
	}
	for {
		select {
		case <-try.done:
			return try.err
		case <-enough(try):
			if try.hasPage() {
				return try.pending()
			}
		case <-ctx.Done():
			return try.pending()
		}
	}
}

// Quietly is Renew as far as that needs no person: by what another process got, by
// a renewal, or with an account of the bridge's own. A *Pending says that a person
// is needed; nobody was asked yet.
func (a *Agent) Quietly(ctx context.Context, refused Refusal) error {
	if !refused.Mendable() || a.alone() {
		return a.Renew(ctx, refused)
	}
	t := &attempt{agent: a, refused: refused, asked: refused.read()}
	found, err := t.reuse(ctx)
	if !found && err == nil {
		return t.pending()
	}
	return err
}

// alone reports whether tokens are got without a person.
func (a *Agent) alone() bool { return a.opt.Grant == ClientCredentials || a.opt.Grant == Enterprise }

// SignedIn returns a channel that is closed at the next sign-in, of this process or
// of another one that it learns of.
func (a *Agent) SignedIn() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.signed
}

// join returns the attempt that is under way, or the one that follows it for what that does not
// ask for, or begins one; nil after Close.
func (a *Agent) join(refused *Refusal) *attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ctx.Err() != nil {
		return nil
	}
	wanted := refused.read()
	t := a.attempt
	if t != nil && t.before != nil {
		if covers(t.before.asked.scopes, wanted.scopes) {
			t = t.before
		} else {
			t.asked.scopes = bounded(union(t.asked.scopes, wanted.scopes)) // it has not begun; what has no room is refused again
			t.more = t.more || refused.wantsMore()
		}
		t.showForLocked(refused)
		return t
	}
	if t != nil && covers(t.asked.scopes, wanted.scopes) {
		t.showForLocked(refused)
		return t
	}
	t = &attempt{agent: a, refused: *refused, asked: wanted, more: refused.wantsMore(), before: a.attempt, done: make(chan struct{}), wantsTab: make(chan struct{}, 1)}
	t.showForLocked(refused)
	a.attempt = t
	a.work.Go(func() {
		t.run(a.ctx)
		a.mu.Lock()
		if a.attempt == t {
			a.attempt = nil
		}
		a.mu.Unlock()
		close(t.done)
		t.end()
	})
	return t
}
