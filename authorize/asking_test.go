package authorize

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/peers/issuer"
)

// Whoever declined and tries again at once is given the new address: no second tab opens
// so soon, and nobody says that one did.
func TestWhoDeclinedIsGivenTheAddress(t *testing.T) {
	i := issuer.New(t)
	i.Declines = true
	a := newAgent(t, i, nil)
	if err := call(t, a); err == nil || !strings.Contains(err.Error(), "was declined; try again if that was not meant") {
		t.Fatalf("told %v", err)
	}
	i.Set(func() { i.Declines = false })
	err := a.Invite(t.Context(), Refusal{Status: http.StatusUnauthorized})
	if err == nil || !strings.Contains(err.Error(), "Open this address in a browser on this machine, then try again: "+i.URL) {
		t.Fatalf("told %v", err)
	}
	_, address, _ := strings.Cut(err.Error(), "then try again: ")
	browse(address)
	if err := call(t, a); err != nil || i.Get(&i.Tabs) != 2 {
		t.Errorf("%v; %d pages", err, i.Tabs)
	}
}

func TestRefusesWhatIsNotMeantForIt(t *testing.T) {
	for name, test := range map[string]struct {
		set  func(*issuer.Issuer)
		want string
	}{
		"resource of somebody else": {func(i *issuer.Issuer) { i.Resource = "https://bank.example.com/mcp" }, "says that it is"},
		"iss of somebody else":      {func(i *issuer.Issuer) { i.Iss = "https://evil.example.com" }, "came from https://evil.example.com"},
		"iss missing":               {func(i *issuer.Issuer) { i.Says = true }, "does not say that it comes from"},
		"issuer of somebody else":   {func(i *issuer.Issuer) { i.Meta = map[string]any{"issuer": "https://evil.example.com"} }, "cannot be used"},
		"no PKCE":                   {func(i *issuer.Issuer) { i.Meta = map[string]any{"code_challenge_methods_supported": []string{}} }, "PKCE"},
		"only plain PKCE":           {func(i *issuer.Issuer) { i.Meta = map[string]any{"code_challenge_methods_supported": []string{"plain"}} }, "PKCE with S256"},
		"no registration":           {func(i *issuer.Issuer) { i.Meta = map[string]any{"registration_endpoint": nil} }, "set it as auth.client-id"},
		"token endpoint over http":  {func(i *issuer.Issuer) { i.Meta = map[string]any{"token_endpoint": "http://192.0.2.1/token"} }, "cannot be used"},
	} {
		t.Run(name, func(t *testing.T) {
			i := issuer.New(t)
			test.set(i)
			a := newAgent(t, i, nil)
			if err := call(t, a); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("told %v", err)
			}
			if l := a.Login(); l.header() != "" {
				t.Error("there is a login")
			}
		})
	}
}

func TestAForeignStateEndsNothing(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, func(o *Options) { o.Browser = []string{"true"} })
	pending := begun(t, a)
	page, _ := url.Parse(pending.URL)
	back := page.Query().Get("redirect_uri")
	resp, err := http.Get(back + "?code=x&state=forged")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("the forged answer got %s", resp.Status)
	}
	browse(pending.URL)
	if err := call(t, a); err != nil {
		t.Error(err)
	}
}

// begun begins a sign-in that nobody finishes, and returns what the person is told.
func begun(t *testing.T, a *Agent) *Pending {
	t.Helper()
	return begunFor(t, a, &Refusal{Status: http.StatusUnauthorized})
}

// begunFor is begun for a refusal.
func begunFor(t *testing.T, a *Agent, refused *Refusal) *Pending {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		err := a.Renew(ctx, *refused)
		cancel()
		if pending, ok := errors.AsType[*Pending](err); ok && pending.URL != "" {
			return pending
		} else if !ok {
			t.Fatalf("told %v", err)
		}
	}
	t.Fatal("no address to sign in at")
	return nil
}

// wants is how a server refuses the present login, for want of a scope.
func wants(a *Agent, scope string) *Refusal {
	return &Refusal{Authorization: a.Login().header(), Status: http.StatusForbidden, Challenge: []string{`Bearer error="insufficient_scope", scope="` + scope + `"`}}
}

// An authorization server may end a sign-in without anybody: then a server that wants another
// scope each time, or a login that cannot be renewed, would have one tab after another opened.
func TestOnlySomePagesOpenInAWhileWhateverTheyLedTo(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, nil)
	for n, scope := range []string{"", "one", "two"} {
		i.Set(func() { i.Wants = scope })
		if err := call(t, a); err != nil || i.Get(&i.Tabs) != n+1 {
			t.Fatalf("for the scope %q: %v; %d pages", scope, err, i.Get(&i.Tabs))
		}
	}
	other := newAgent(t, i, func(o *Options) { o.Dir = a.opt.Dir }) // as another process
	for n, next := range []func() *Pending{
		func() *Pending { return begunFor(t, a, wants(a, "three")) },
		func() *Pending { return begunFor(t, other, wants(a, "four")) },
		func() *Pending {
			l := a.Login().bare(true)
			if err := a.store.save(l); err != nil {
				t.Fatal(err)
			}
			a.login.Store(l)
			return begun(t, a)
		},
	} {
		pending := next()
		if pending.Opened || !strings.Contains(pending.Error(), "Open this address in a browser on this machine") || i.Get(&i.Tabs) != 3+n {
			t.Fatalf("told %v; %d pages", pending, i.Get(&i.Tabs))
		}
		browse(pending.URL) // the person
		l, err := a.store.load()
		if err != nil || l.header() == "" {
			t.Fatalf("the page led to no login: %v", err)
		}
		a.login.Store(l)
	}
	later(t, a, tabsWhile)
	i.Set(func() { i.Wants = "five" })
	if err := call(t, a); err != nil || i.Get(&i.Tabs) != 7 {
		t.Errorf("ten minutes later: %v; %d pages", err, i.Get(&i.Tabs))
	}
}

// Nor does a page open again at once for who declined.
func TestAPageThatLedToNoLoginIsNotOpenedAgainSoSoon(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, nil)
	i.Declines = true
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if err := a.Renew(ctx, Refusal{Status: http.StatusUnauthorized}); err == nil {
			t.Error("a sign-in that was declined succeeded")
		}
		cancel()
	}
	if i.Get(&i.Tabs) != 1 {
		t.Errorf("%d pages", i.Get(&i.Tabs))
	}
}

// While a page waits for its person, requests that want other rights, and those that come after
// them, are told of it: one more page, for all of these together, follows.
func TestWhoWantsOtherRightsMeanwhileIsToldOfThePage(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, func(o *Options) { o.Browser = []string{"true"} })
	browse(begun(t, a).URL)
	first := begunFor(t, a, wants(a, "one"))
	for _, scope := range []string{"two", "one", "three", "two"} {
		if pending := begunFor(t, a, wants(a, scope)); pending.URL != first.URL {
			t.Errorf("who wants %s is told %v instead of %s", scope, pending, first.URL)
		}
	}
	var shown *Pending
	if err := a.Invite(t.Context(), *wants(a, "four")); !errors.As(err, &shown) || shown.URL != first.URL {
		t.Errorf("who shows the page is told %v", err)
	}
	browse(first.URL)
	next := first
	for end := time.Now().Add(patience); next.URL == first.URL && time.Now().Before(end); {
		next = begunFor(t, a, wants(a, "two"))
	}
	browse(next.URL)
	if l := a.Login(); !covers(l.Requested, []string{"one", "two", "three", "four"}) {
		t.Errorf("after both pages there are the rights %v", l.Requested)
	}
}

// Nobody signed in at the first page: no other one opens for requests that have long ended.
func TestAPageThatNobodyAnswersIsFollowedByNone(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, nil)
	first := &attempt{agent: a, done: make(chan struct{}), wantsTab: make(chan struct{}, 1)}
	a.attempt = first
	ended := make(chan error, 1)
	next := a.join(&Refusal{Status: http.StatusUnauthorized, Challenge: []string{`Bearer scope="more"`}})
	go func() { <-next.done; ended <- next.err }()
	first.err = first.late(expired(t))
	close(first.done)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "nobody signed in") || i.Get(&i.Tabs) != 0 {
		t.Errorf("told %v; %d pages", err, i.Get(&i.Tabs))
	}
}

// The first attempt may end before the one that was put behind it runs: that one follows it all the same, and is widened by nobody
// from then on.
func TestAnAttemptThatEndedBeforeItsFollowerRanIsFollowed(t *testing.T) {
	a := newAgent(t, issuer.New(t), nil)
	for name, c := range map[string]struct{ of, want error }{"nobody came": {errNobody, errNobody}, "somebody signed in": {nil, nil}} {
		first := &attempt{agent: a, err: c.of, done: make(chan struct{})}
		close(first.done)
		first.end()
		next := &attempt{agent: a, before: first}
		if err := next.follows(t.Context()); !errors.Is(err, c.want) {
			t.Errorf("%s: told %v, want %v", name, err, c.want)
		}
		if next.before != nil {
			t.Errorf("%s: others widen it while it runs, and are sent to the attempt that has ended", name)
		}
	}
}

// Whoever shows the page itself (Invite) may come while an attempt is under way that needs nobody in the end, like a renewal: the
// page of its own attempt is told at once then, since nothing else opens it.
func TestWhoIsInvitedIsToldOfThePageThatFollowsAnAttemptWithoutOne(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, func(o *Options) { o.Browser = []string{"true"} })
	first := &attempt{agent: a, done: make(chan struct{}), wantsTab: make(chan struct{}, 1), quiet: true}
	a.attempt = first
	told := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { told <- a.Invite(ctx, *wants(a, "more")) }()
	waitFor(t, func() string { // until it waits for the first one
		first.mu.Lock()
		defer first.mu.Unlock()
		if first.known == nil {
			return ""
		}
		return "it does"
	})
	close(first.done)
	first.end()
	var shown *Pending
	if err := <-told; !errors.As(err, &shown) || shown.URL == "" {
		t.Errorf("told %v", err)
	}
}

// A step-up takes nothing away (SEP-2350), also where the sign-in that it joins was begun by a 401.
func TestAStepUpThatJoinsASignInTakesNothingAway(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, func(o *Options) { o.Browser = []string{"true"} })
	unauthorized := func(token string) *Refusal {
		return &Refusal{Authorization: token, Status: http.StatusUnauthorized, Challenge: []string{`Bearer error="invalid_token", scope="a"`}}
	}
	browse(begunFor(t, a, unauthorized("")).URL)
	first := begunFor(t, a, wants(a, "one"))
	begunFor(t, a, unauthorized(a.Login().header())) // its token has expired meanwhile
	begunFor(t, a, wants(a, "two"))
	browse(first.URL)
	next := first
	for end := time.Now().Add(patience); next.URL == first.URL && time.Now().Before(end); {
		next = begunFor(t, a, wants(a, "two"))
	}
	browse(next.URL)
	if l := a.Login(); !covers(l.Requested, []string{"a", "one", "two"}) {
		t.Errorf("after the step-up there are the rights %v", l.Requested)
	}
}

// expired is a context whose time is over.
func expired(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	t.Cleanup(cancel)
	return ctx
}

// A process that goes on with the page of another one, which is gone, may have the login while it still prepares a page of its own.
func TestNoPageOpensBesideALoginThatCameMeanwhile(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, nil)
	if err := call(t, a); err != nil {
		t.Fatal(err)
	}
	late := &attempt{agent: a, refused: Refusal{Status: http.StatusUnauthorized}}
	if late.browse(&pending{pendingSecrets: pendingSecrets{URL: i.Endpoint(), State: "late"}}) || i.Get(&i.Tabs) != 1 || len(a.store.tabs()) != 1 {
		t.Errorf("%d pages", i.Get(&i.Tabs))
	}
}

func TestATakenPortIsNoMatter(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, nil)
	listeners, err := open(t.Context(), a.opt.callbacks()[0])
	if err != nil {
		t.Skip("the port is in use on this machine")
	}
	defer listeners[0].Close()
	if err := call(t, a); err != nil {
		t.Error(err)
	}
}

func TestATakenCallbackIsTold(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, func(o *Options) {
		o.Callback = o.callbacks()[0]
		o.Callback = strings.Replace(o.Callback, "/callback", "/oauth/done", 1)
	})
	listeners, err := open(t.Context(), a.opt.Callback)
	if err != nil {
		t.Skip("the port is in use on this machine")
	}
	if err := call(t, a); err == nil || !strings.Contains(err.Error(), "in use by another program") {
		t.Errorf("told %v", err)
	}
	_ = listeners[0].Close()
	if err := call(t, a); err != nil {
		t.Error(err)
	}
}

func TestSignOut(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, nil)
	if err := call(t, a); err != nil {
		t.Fatal(err)
	}
	if had, err := a.SignOut(t.Context()); err != nil || !had {
		t.Error(had, err)
	}
	if len(i.Refresh) != 0 {
		t.Error("the authorization server was not told")
	}
	if list, err := List(a.opt.Dir); err != nil || len(list) != 0 {
		t.Errorf("%v is left, %v", list, err)
	}
}

// Somebody else shows the page, until a request comes for which nobody does: then the
// browser opens, once.
func TestABrowserOpensOnlyWhereNobodyShowsThePage(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, nil)
	refused := Refusal{Status: http.StatusUnauthorized, Shown: true}
	var pending *Pending
	if err := a.Invite(t.Context(), refused); !errors.As(err, &pending) || pending.URL == "" || pending.Opened {
		t.Fatalf("the invitation is %v", err)
	}
	if n := i.Get(&i.Tabs); n != 0 {
		t.Errorf("%d tabs", n)
	}
	refused.Shown = false
	if err := a.Renew(t.Context(), refused); err != nil || i.Get(&i.Tabs) != 1 {
		t.Errorf("%v; %d tabs", err, i.Tabs)
	}
}
