package authorize

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/peers/issuer"

	"github.com/rs/zerolog"
)

// patience bounds what a test waits for.
const patience = 20 * time.Second

// newAgent is one whose person agrees to everything.
func newAgent(t *testing.T, i *issuer.Issuer, change func(*Options)) *Agent {
	t.Helper()
	opt := Options{Server: i.Endpoint(), Dir: t.TempDir(), Store: "file", Browser: agreeing(), Log: zerolog.New(zerolog.NewTestWriter(t))}
	if change != nil {
		change(&opt)
	}
	a, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// call makes one request of the server, as whoever uses an agent does: it sends it
// again as long as the agent can do something about a refusal.
func call(t *testing.T, a *Agent) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range 4 {
		header, err := a.Authorization(ctx)
		if err != nil {
			return err
		}
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, a.opt.Server, nil)
		if header != "" {
			req.Header.Set("Authorization", header)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return nil
		}
		if err := a.Renew(ctx, Refusal{Authorization: header, Status: resp.StatusCode, Challenge: resp.Header.Values("WWW-Authenticate")}); err != nil {
			return err
		}
	}
	return errors.New("refused four times")
}

func TestSignsInOnceAndStaysSignedIn(t *testing.T) {
	i := issuer.New(t)
	i.Scopes, i.Offline, i.Iss, i.Says = []string{"read"}, true, "own", true
	a := newAgent(t, i, nil)
	for range 3 {
		if err := call(t, a); err != nil {
			t.Fatal(err)
		}
	}
	if i.Get(&i.Tabs) != 1 || i.Get(&i.Joined) != 1 {
		t.Errorf("%d tabs and %d registrations for one sign-in", i.Tabs, i.Joined)
	}
	for _, request := range i.Requests {
		if request.Get("resource") != i.Endpoint() {
			t.Errorf("a request for the resource %q", request.Get("resource"))
		}
	}
	if scope := i.Requests[0].Get("scope"); scope != "read offline_access" {
		t.Errorf("asked for the scopes %q", scope)
	}
	again := newAgent(t, i, func(o *Options) { o.Dir = a.opt.Dir })
	if err := call(t, again); err != nil || i.Get(&i.Tabs) != 1 {
		t.Errorf("after a restart: %v, %d tabs", err, i.Tabs)
	}
}

func TestFilesAreOnesOwn(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no modes")
	}
	i := issuer.New(t)
	a := newAgent(t, i, func(o *Options) { o.Dir = filepath.Join(t.TempDir(), "deep", "auth") })
	if err := call(t, a); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(a.opt.Dir)
	if err != nil || len(entries) == 0 {
		t.Fatal(err, len(entries))
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v %v", e.Name(), info.Mode(), err)
		}
	}
	if info, err := os.Stat(a.opt.Dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory has the mode %v %v", info.Mode(), err)
	}
}

func TestRenewsBeforeExpiry(t *testing.T) {
	i := issuer.New(t)
	i.Life = 5 * time.Second // of which the last half second counts as over
	a := newAgent(t, i, nil)
	if err := call(t, a); err != nil {
		t.Fatal(err)
	}
	l := *a.login.Load()
	l.Renew = time.Now().Add(-time.Second)
	a.login.Store(&l)
	if err := a.store.save(&l); err != nil {
		t.Fatal(err)
	}
	if err := call(t, a); err != nil {
		t.Fatal(err)
	}
	if i.Get(&i.Renewed) != 1 || i.Get(&i.Tabs) != 1 {
		t.Errorf("renewed %d times, %d tabs", i.Renewed, i.Tabs)
	}
	if last := i.Requests[len(i.Requests)-1]; last.Get("grant_type") != grantRefresh || last.Get("resource") != i.Endpoint() {
		t.Errorf("renewed with %v", last.Get("resource"))
	}
}

// age makes a login one whose access token has expired, and that was got long ago.
func age(t *testing.T, a *Agent) {
	t.Helper()
	l := *a.login.Load()
	past := time.Now().Add(-time.Hour)
	l.Renew, l.Expires, l.Updated, l.SignedIn = past, past, past, past
	a.login.Store(&l)
	if err := a.store.save(&l); err != nil {
		t.Fatal(err)
	}
}

func TestSleepOverExpiry(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, nil)
	if err := call(t, a); err != nil {
		t.Fatal(err)
	}
	age(t, a)
	i.Set(func() { clear(i.Live) })
	if err := call(t, a); err != nil || i.Get(&i.Tabs) != 1 || i.Get(&i.Renewed) != 1 {
		t.Errorf("%v; %d tabs, renewed %d times", err, i.Tabs, i.Renewed)
	}
}

// The server's clock may be ahead: it refuses what looks good from here.
func TestClockSkew(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, nil)
	if err := call(t, a); err != nil {
		t.Fatal(err)
	}
	l := *a.login.Load()
	l.Updated = time.Now().Add(-time.Minute)
	a.login.Store(&l)
	if err := a.store.save(&l); err != nil {
		t.Fatal(err)
	}
	i.Set(func() { clear(i.Live) })
	if err := call(t, a); err != nil || i.Get(&i.Tabs) != 1 || i.Get(&i.Renewed) != 1 {
		t.Errorf("%v; %d tabs, renewed %d times", err, i.Tabs, i.Renewed)
	}
}

func TestNothingIsLostWhileTheIssuerIsDown(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, nil)
	if err := call(t, a); err != nil {
		t.Fatal(err)
	}
	before := a.login.Load().Refresh
	age(t, a)
	i.Set(func() { clear(i.Live); i.Broken = 503 })
	err := call(t, a)
	if failure, ok := errors.AsType[*Failure](err); !ok || !failure.Passing || !strings.Contains(err.Error(), "nothing was lost") {
		t.Errorf("told %v", err)
	}
	i.Set(func() { i.Broken = 0 })
	if err := call(t, a); err != nil || i.Get(&i.Tabs) != 1 || a.login.Load().Refresh == before {
		t.Errorf("afterwards %v; %d tabs", err, i.Tabs)
	}
}

func TestALostRefreshTokenMeansOneNewSignIn(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, nil)
	if err := call(t, a); err != nil {
		t.Fatal(err)
	}
	age(t, a)
	i.Set(func() { clear(i.Live); clear(i.Refresh) })
	if err := call(t, a); err != nil || i.Get(&i.Tabs) != 2 || i.Get(&i.Joined) != 1 {
		t.Errorf("%v; %d tabs, %d registrations", err, i.Tabs, i.Joined)
	}
}

func TestStepUpAsksForTheUnion(t *testing.T) {
	i := issuer.New(t)
	i.Scopes = []string{"read"}
	a := newAgent(t, i, nil)
	if err := call(t, a); err != nil {
		t.Fatal(err)
	}
	i.Set(func() { i.Wants = "write" })
	if err := call(t, a); err != nil {
		t.Fatal(err)
	}
	if scope := a.login.Load().Granted; strings.Join(scope, " ") != "read write" {
		t.Errorf("after the step-up there are the scopes %q", scope)
	}
}

// A server that always refuses must not open one tab after another.
func TestNoStormOfTabs(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, nil)
	if err := call(t, a); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		i.Set(func() { clear(i.Live) })
		if err := call(t, a); err == nil || !strings.Contains(err.Error(), "refuses the token") {
			t.Errorf("told %v", err)
		}
	}
	if i.Get(&i.Tabs) != 1 {
		t.Errorf("%d tabs", i.Tabs)
	}
}

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
	for end := time.Now().Add(patience); time.Now().Before(end); {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		err := a.Renew(ctx, Refusal{Status: http.StatusUnauthorized})
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
