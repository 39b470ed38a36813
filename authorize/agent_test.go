package authorize

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/peers/issuer"
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

// age makes a login one whose access token has expired, and that was got long ago, as its page was opened.
func age(t *testing.T, a *Agent) {
	t.Helper()
	l := *a.login.Load()
	past := time.Now().Add(-time.Hour)
	l.Renew, l.Expires, l.Updated, l.SignedIn = past, past, past, past
	a.login.Store(&l)
	if err := a.store.save(&l); err != nil {
		t.Fatal(err)
	}
	later(t, a, time.Hour)
}

// later has the pages that were opened be of some time ago.
func later(t *testing.T, a *Agent, ago time.Duration) {
	t.Helper()
	tabs := a.store.tabs()
	for n := range tabs {
		tabs[n].At = tabs[n].At.Add(-ago)
	}
	if err := a.store.keepTabs(tabs); err != nil {
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
