package authorize

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/peers/issuer"
)

// full has nothing written in a login's place any more, as on a full disk, and returns what makes room again.
func full(t *testing.T, file string) (room func()) {
	t.Helper()
	if err := os.Rename(file, filepath.Join(filepath.Dir(file), strings.TrimSuffix(filepath.Base(file), loginFile)+"-kept"+loginFile)); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(file, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
	}
}

// A refresh token is good for one use: none is used up for tokens that could not be kept.
func TestNothingIsLostWhileALoginCannotBeKept(t *testing.T) {
	i := issuer.New(t)
	a, file := signedIn(t, i)
	age(t, a)
	room := full(t, file)
	i.Set(func() { clear(i.Live) })
	err := call(t, a)
	if failure, ok := errors.AsType[*Failure](err); !ok || !failure.Passing || !strings.Contains(err.Error(), "cannot be kept") || !strings.Contains(err.Error(), "nothing was lost") {
		t.Errorf("told %v", err)
	}
	if n := i.Get(&i.Renewed); n != 0 {
		t.Errorf("renewed %d times", n)
	}
	room()
	if err := call(t, a); err != nil || i.Get(&i.Tabs) != 1 || i.Get(&i.Renewed) != 1 {
		t.Errorf("afterwards %v; %d tabs, renewed %d times", err, i.Get(&i.Tabs), i.Get(&i.Renewed))
	}
}

// lateWay does something when an answer has come.
type lateWay struct{ then func() }

func (w *lateWay) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if w.then != nil && err == nil && r.Method == http.MethodPost {
		w.then()
		w.then = nil
	}
	return resp, err
}

// A disk that is full only when the new tokens have come: they are used, and kept as soon as they can be.
func TestTokensThatCouldNotBeKeptAreUsed(t *testing.T) {
	i := issuer.New(t)
	first, file := signedIn(t, i)
	age(t, first)
	way := &lateWay{}
	a := newAgent(t, i, func(o *Options) { o.Dir, o.Issuers = first.opt.Dir, &http.Client{Transport: way} })
	var room func()
	way.then = func() { room = full(t, file) }
	i.Set(func() { clear(i.Live) })
	for range 2 {
		if err := call(t, a); err != nil || i.Get(&i.Tabs) != 1 || i.Get(&i.Renewed) != 1 {
			t.Fatalf("%v; %d tabs, renewed %d times", err, i.Get(&i.Tabs), i.Get(&i.Renewed))
		}
	}
	room()
	l := *a.login.Load()
	l.Renew = time.Now().Add(-time.Second)
	a.login.Store(&l)
	if err := call(t, a); err != nil || i.Get(&i.Tabs) != 1 || i.Get(&i.Renewed) != 2 {
		t.Errorf("with room again %v; %d tabs, renewed %d times", err, i.Get(&i.Tabs), i.Get(&i.Renewed))
	}
	if l, err := a.store.newest(a.store.counts); err != nil || l == nil || l.Access != a.Login().Access {
		t.Errorf("kept is %+v, %v", l, err)
	}
}

// An account of the bridge's own goes on with tokens that cannot be kept.
func TestAMachineNeedsNoPlaceForItsTokens(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, func(o *Options) {
		o.Grant, o.ClientID, o.ClientSecret, o.Issuer = ClientCredentials, "machine", "hush", strings.TrimSuffix(o.Server, "/mcp")
	})
	if err := call(t, a); err != nil {
		t.Fatal(err)
	}
	list, err := List(a.opt.Dir)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	age(t, a)
	full(t, list[0].File)
	for range 3 { // each renewal goes on from the one before, though none could be kept
		i.Set(func() { clear(i.Live) })
		l := *a.login.Load()
		l.Renew = time.Now().Add(-time.Second)
		a.login.Store(&l)
		if err := call(t, a); err != nil {
			t.Error(err)
		}
	}
	if renewed, reused := i.Get(&i.Renewed), i.Get(&i.Reused); renewed != 3 || reused != 0 {
		t.Errorf("renewed %d times, %d times with a refresh token that was used before", renewed, reused)
	}
}
