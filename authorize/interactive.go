package authorize

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/mcpbridge/bridge/internal/browser"
)

// lookEvery is how often a process looks for what another one has done.
const lookEvery = 200 * time.Millisecond

// ask has the person sign in. One process at a time leads: it holds the port to
// which the browser comes back. The others look at what is kept, and one of them
// leads on when the leader dies.
func (t *attempt) ask(ctx context.Context, at *place) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		unlock, leads, err := t.agent.store.tryLead()
		if err != nil {
			return failf(err, "the place for logins %s cannot be used (%v); make it yours, or set auth.dir to a directory that you may write to", t.agent.opt.Dir, err)
		}
		if leads {
			defer unlock()
			return t.lead(ctx, at)
		}
		if p := t.agent.store.newestPending(); p != nil {
			t.follow(p)
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return t.late(ctx)
		}
		if t.adopted() {
			return nil
		}
	}
}

// adopted reports whether another process has brought a login that will do, which the agent has then.
func (t *attempt) adopted() bool {
	l, err := t.agent.store.load()
	if err != nil || !t.suits(l) {
		return false
	}
	t.agent.adopt(l)
	return true
}

// leaderTime is how long a leader may take from its sign-in to the browser.
const leaderTime = 5 * time.Second

// follow tells of a sign-in that another process leads. Its page may be shown by a client
// of that one: then this one opens it, too, where it is needed.
func (t *attempt) follow(p *pending) {
	if lately(p.Began, leaderTime) {
		t.show(p.told(true))
		return
	}
	select {
	case <-t.wantsTab:
		t.show(p.told(t.browse(p)))
	default:
	}
}

// late words that nobody signed in.
func (t *attempt) late(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return failf(errNobody, "nobody signed in to %s within %s; try again when you are ready", t.agent.opt.host(), signInLife)
	}
	return failf(nil, "the sign-in to %s was stopped before anybody had signed in", t.agent.opt.host())
}

// lead carries a sign-in through, with the lock held.
func (t *attempt) lead(ctx context.Context, at *place) error {
	a := t.agent
	if l, err := a.store.load(); err == nil && t.suits(l) { // before the lock was free
		a.adopt(l)
		return nil
	}
	if a.opt.Grant == Device || a.opt.Grant == Auto && len(a.opt.Browser) == 0 && !browser.Seen(os.Environ()) && at.meta.DeviceEndpoint != "" {
		return t.leadDevice(ctx, at)
	}
	if at.meta.AuthorizationEndpoint == "" {
		return failf(nil, "the authorization server %s has no page to sign in on; its operator can tell you what it has instead (auth.grant)", hostOf(at.meta.Issuer))
	}
	entrance, err := a.listen(ctx, at)
	if err != nil {
		return err
	}
	defer entrance.close()
	p, err := t.prepare(ctx, at, entrance)
	if err != nil {
		return err
	}
	select {
	case <-t.wantsTab:
		t.show(p.told(t.browse(p)))
	default:
		t.show(p.told(false))
	}
	return t.await(ctx, entrance, p)
}

// await returns when the browser came back, or another process has the login: a
// person may sign in with a command in a terminal meanwhile.
func (t *attempt) await(ctx context.Context, e *entrance, p *pending) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case err := <-e.came:
			return err
		case <-t.wantsTab: // so far somebody else showed the page
			t.show(p.told(t.browse(p)))
		case <-look.C:
		case <-ctx.Done():
			return t.late(ctx)
		}
		if t.adopted() {
			return nil
		}
	}
}

// prepare returns the pending sign-in that another process began and the person
// may have in a tab, or begins one.
func (t *attempt) prepare(ctx context.Context, at *place, e *entrance) (*pending, error) {
	a := t.agent
	scopes := t.scopes(at)
	if p := a.store.newestPending(); p != nil && p.Issuer == at.meta.Issuer && p.Resource == at.resource && covers(p.Scopes, scopes) && p.Redirect == e.redirect {
		return p, nil
	}
	c, err := a.client(ctx, at, e.redirects)
	if err != nil {
		return nil, err
	}
	p := a.begin(at, &c, e.redirect, scopes)
	return p, a.store.keepPending(p)
}

// browse opens the page of a sign-in, unless it is too soon for one more. What a person asked
// for by command opens always. It reports whether a browser was asked to open this page.
func (t *attempt) browse(p *pending) bool {
	a := t.agent
	if len(a.opt.Browser) == 0 && !browser.Seen(os.Environ()) {
		a.opt.Log.Warn().Str("url", p.URL).Msg("sign in: open this address in a browser")
		return false
	}
	page, tabs := a.store.pendingName(p.State), a.store.tabs()
	l, err := a.store.load()
	switch {
	case err == nil && t.suits(l): // the page of a process that is gone has led to it just now
		return false
	case !t.bidden && tooSoon(tabs, l):
		return tabs[len(tabs)-1].Page == page
	}
	if err := a.store.keepTabs(append(tabs, tab{page, time.Now()})); err != nil {
		return false // else nothing would keep tabs from being opened again and again
	}
	if err := browser.Open(a.opt.Browser, p.URL); err != nil {
		_ = a.store.keepTabs(tabs) // no tab was opened: whoever can may do so
		a.opt.Log.Warn().Err(err).Str("url", p.URL).Msg("the browser cannot be opened (auth.browser): open this address to sign in")
		return false
	}
	a.opt.Log.Info().Str("server", a.opt.host()).Msg("a sign-in page was opened in the browser")
	return true
}
