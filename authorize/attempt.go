package authorize

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/internal/clip"
)

// attempt is one endeavour of this process to get credentials that the server
// takes. It ends when it has them, when the person or the authorization server
// refused, or when nobody signed in for as long as a sign-in is good.
type attempt struct {
	agent   *Agent
	refused Refusal
	asked   challenge // widened by others as long as it follows another one, with agent.mu held
	more    bool      // rights are wanted beyond those of the login, which it keeps (SEP-2350); widened like asked
	before  *attempt  // under way, which this one follows; nil: none. Guarded by agent.mu

	done chan struct{} // closed at the end
	err  error         // why it failed; read after done

	shown  func(Pending) // called with what the person can do; may be nil
	bidden bool          // a person asked for it by command, and not a server
	over   *time.Time    // of the sign-in whose login will not do, since another is wanted; nil: any will

	wantsTab chan struct{} // gets a value when somebody needs the browser; full from the start but for Refusal.Shown

	mu    sync.Mutex
	tell  Pending
	known chan struct{} // closed when tell says what to do, or ended; nil: nobody waits for that
	ended bool
	quiet bool // a renewal is under way, which needs nobody
}

// needTab asks for the browser.
func (t *attempt) needTab() {
	select {
	case t.wantsTab <- struct{}{}:
	default: // it is asked for
	}
}

// showForLocked asks for the browser, also for the page that comes first, unless whoever was refused
// shows the page.
func (t *attempt) showForLocked(refused *Refusal) {
	if refused.Shown {
		return
	}
	t.needTab()
	if t.before != nil {
		t.before.needTab()
	}
}

// told returns a channel that is closed when it is known what the person can do.
// It is also closed where the attempt that came first has ended without that: one asks again then.
func (t *attempt) told() <-chan struct{} {
	t = t.shows()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = make(chan struct{})
		if t.ended || t.tell.URL != "" {
			close(t.known)
		}
	}
	return t.known
}

// end has those ask again who wait to be told.
func (t *attempt) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	if t.known != nil && t.tell.URL == "" {
		close(t.known)
	}
}

// shows returns the attempt whose page the person is told of: that of the one before comes first, until its end is told, too (end).
// That end is no reason not to follow it: it may come before this one runs (follows).
func (t *attempt) shows() *attempt {
	t.agent.mu.Lock()
	defer t.agent.mu.Unlock()
	if t.before != nil && !t.before.hasEnded() {
		return t.before
	}
	return t
}

func (t *attempt) hasEnded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// hasPage reports whether there is an address for the person.
func (t *attempt) hasPage() bool {
	t = t.shows()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tell.URL != ""
}

// pending says what the person can do meanwhile, or that there is nothing to do.
func (t *attempt) pending() error {
	t = t.shows()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.quiet {
		return t.agent.slow(nil)
	}
	told := t.tell
	told.Server = t.agent.opt.host()
	return &told
}

func (t *attempt) show(p Pending) {
	p.Server = t.agent.opt.host()
	t.mu.Lock()
	news := t.tell != p
	if t.known != nil && !t.ended && t.tell.URL == "" && p.URL != "" {
		close(t.known)
	}
	t.tell = p
	t.mu.Unlock()
	if news && t.shown != nil {
		t.shown(p)
	}
}

func (t *attempt) run(ctx context.Context) {
	if t.err = t.follows(ctx); t.err != nil {
		return // which was told of
	}
	t.err = t.get(ctx)
	if ctx.Err() == nil {
		t.agent.tell(StepSignIn, t.err)
	}
	if t.err != nil && ctx.Err() == nil {
		t.agent.opt.Log.Warn().Err(t.err).Msg("the sign-in failed")
	}
}

// follows waits for the end of the attempt before, which may have come already. Where nobody came for that, this one is over,
// too: nobody may wait for its page any more.
func (t *attempt) follows(ctx context.Context) error {
	t.agent.mu.Lock()
	before := t.before
	t.agent.mu.Unlock()
	if before == nil {
		return nil
	}
	select {
	case <-before.done:
	case <-ctx.Done():
		return before.late(ctx)
	}
	t.agent.mu.Lock()
	t.before = nil // nobody widens this one from now on
	t.agent.mu.Unlock()
	if errors.Is(before.err, errNobody) {
		return before.err
	}
	return nil
}

// get tries what needs nobody first.
func (t *attempt) get(ctx context.Context) error {
	if found, err := t.reuse(ctx); found || err != nil {
		return err
	}
	return t.obtain(ctx)
}

// obtain gets credentials anew, unless those that came a moment ago were of no use from the start.
func (t *attempt) obtain(ctx context.Context) error {
	if err := t.agent.useless.Load().still(); err != nil {
		return err
	}
	err := t.signIn(ctx)
	t.agent.useless.Store(newUseless(err))
	return err
}

func (t *attempt) signIn(ctx context.Context) error {
	a := t.agent
	ctx, cancel := context.WithTimeout(ctx, signInLife)
	defer cancel()
	at, err := a.locate(ctx, &t.asked)
	if err != nil {
		return err
	}
	if err := t.hopeless(at); err != nil {
		return err
	}
	switch a.opt.Grant {
	case ClientCredentials:
		return a.enter(ctx, func(scopes []string) (*Login, error) { return a.asMachine(ctx, at, scopes) }, t.scopes(at))
	case Enterprise:
		return a.enter(ctx, func(scopes []string) (*Login, error) { return a.asEmployee(ctx, at, scopes) }, t.scopes(at))
	}
	return t.ask(ctx, at)
}

// reuse looks for credentials that another process got, or that a renewal brings.
func (t *attempt) reuse(ctx context.Context) (bool, error) {
	a := t.agent
	l, err := a.store.load()
	if err != nil {
		return false, err
	}
	if t.suits(l) {
		a.adopt(l)
		return true, nil
	}
	a.login.Store(l)
	if l == nil || t.refused.Status != http.StatusUnauthorized || l.header() != t.refused.Authorization || l.Access == "" ||
		lately(l.Updated, again) {
		return false, nil
	}
	t.renews(true)
	next, err := a.refresh(ctx, l.Access)
	t.renews(false)
	return err == nil && next.header() != "", err
}

// renews notes whether a renewal is under way.
func (t *attempt) renews(so bool) {
	t.mu.Lock()
	t.quiet = so
	t.mu.Unlock()
}

// hopeless ends an attempt that would only repeat a sign-in which has just been
// of no use.
func (t *attempt) hopeless(at *place) error {
	l := t.agent.login.Load()
	if l == nil || l.header() == "" || l.header() != t.refused.Authorization || l.Issuer != at.meta.Issuer || !lately(l.SignedIn, tabEvery) {
		return nil
	}
	switch {
	case t.refused.Status == http.StatusUnauthorized:
		return failf(nil, "%s refuses the token that %s gave for it a moment ago; its operator should know", t.agent.opt.host(), hostOf(l.Issuer))
	case covers(l.Requested, t.scopes(at)):
		return failf(nil, "%s wants rights (%s) that %s was asked for and did not give; you may not have them", t.agent.opt.host(),
			clip.Line(strings.Join(t.asked.scopes, " ")), hostOf(l.Issuer))
	}
	return nil
}

// suits reports whether a login may do where the refused credentials did not.
func (t *attempt) suits(l *Login) bool {
	if l == nil || !l.valid(time.Now()) || l.header() == t.refused.Authorization || t.over != nil && l.SignedIn.Equal(*t.over) {
		return false
	}
	return covers(union(l.Requested, l.Granted), t.asked.scopes)
}

// scopes chooses what to ask for: what the operator set, else what the challenge
// wants, else what the metadata list; with all that was asked for before, so that
// a step-up takes nothing away (SEP-2350). Where there is no room for all, what is wanted
// now goes first, and then what was given.
func (t *attempt) scopes(at *place) []string {
	a := t.agent
	var wanted []string
	switch {
	case len(a.opt.Scopes) > 0:
		wanted = union(a.opt.Scopes, t.asked.scopes)
	case len(t.asked.scopes) > 0:
		wanted = t.asked.scopes
	default:
		wanted = at.scopes
	}
	if l := a.login.Load(); l != nil && l.Issuer == at.meta.Issuer && t.more {
		all := union(union(l.Requested, l.Granted), wanted)
		if len(bounded(all)) < len(all) {
			all = union(union(wanted, l.Granted), l.Requested)
		}
		wanted = all
	}
	wanted = bounded(wanted)
	if !a.alone() && covers(at.meta.ScopesSupported, []string{"offline_access"}) {
		wanted = union(wanted, []string{"offline_access"})
	}
	return wanted
}

// enter gets a login that needs no person, once across processes.
func (a *Agent) enter(ctx context.Context, get func(scopes []string) (*Login, error), scopes []string) error {
	unlock, err := a.store.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	l, err := get(scopes)
	if err != nil {
		return err
	}
	l.SignedIn = l.Updated
	if err := a.store.save(l); err != nil { // the next process gets others as easily
		a.opt.Log.Warn().Err(err).Msg("the tokens are in memory only")
	}
	a.adopt(l)
	return nil
}

// useless remembers that an authorization server gives tokens which have expired when they come: nobody
// asks for others at once.
type useless struct {
	err error
	at  time.Time
}

// newUseless returns what is to be remembered of an error, nil: nothing.
func newUseless(err error) *useless {
	if !errors.Is(err, errStillborn) {
		return nil
	}
	return &useless{err, time.Now()}
}

// still returns why there is no use in asking yet; nil: there is.
func (u *useless) still() error {
	if u == nil || !lately(u.at, again) {
		return nil
	}
	return u.err
}
