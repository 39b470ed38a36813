package authorize

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/peers/issuer"
)

// A clock that was ahead when the person signed in, and is right since: what it wrote is no
// reason to take the login for a new one, which cannot be renewed, for years.
func TestAClockThatWasAhead(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, nil)
	if err := call(t, a); err != nil {
		t.Fatal(err)
	}
	const ahead = 1000 * time.Hour
	l := *a.login.Load()
	l.Updated, l.SignedIn, l.Expires, l.Renew = l.Updated.Add(ahead), l.SignedIn.Add(ahead), l.Expires.Add(ahead), l.Renew.Add(ahead)
	if err := a.store.save(&l); err != nil {
		t.Fatal(err)
	}
	a.login.Store(&l)
	i.Set(func() { clear(i.Live) }) // the token's time is over
	if err := call(t, a); err != nil || i.Get(&i.Tabs) != 1 || i.Get(&i.Renewed) != 1 {
		t.Errorf("%v; %d tabs, %d renewals", err, i.Get(&i.Tabs), i.Get(&i.Renewed))
	}
}

// Nor is a page that was opened then one of now.
func TestAPageOfAClockThatWasAhead(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, nil)
	stamp := a.store.Path(key(a.opt.Server) + openedFile)
	if err := a.store.Replace(key(a.opt.Server)+openedFile, nil); err != nil {
		t.Fatal(err)
	}
	if later := time.Now().Add(1000 * time.Hour); os.Chtimes(stamp, later, later) != nil {
		t.Fatal("the time of the file cannot be set")
	}
	if err := call(t, a); err != nil {
		t.Error(err)
	}
}

// The command signs in, whatever there is: with another account, for one.
func TestSignInByCommandIsANewOne(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, nil)
	first, err := a.SignIn(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	again := newAgent(t, i, func(o *Options) { o.Dir = a.opt.Dir })
	second, err := again.SignIn(t.Context(), nil, nil)
	if err != nil || second.Access == first.Access || i.Get(&i.Tabs) != 2 {
		t.Errorf("%v; the same login: %v; %d tabs", err, second != nil && second.Access == first.Access, i.Get(&i.Tabs))
	}
}

// A browser may load the page at the end twice. The code goes to the authorization server
// once, which takes a second time for theft, and both pages say the same.
func TestAPageThatIsLoadedTwice(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, func(o *Options) { o.Browser = []string{"true"} })
	pending := begun(t, a)
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(pending.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	back, err := url.Parse(resp.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	const loads = 8
	answers := make(chan int, loads)
	e := &entrance{came: make(chan error, 1)}
	var all sync.WaitGroup
	i.Set(func() { // which holds the authorization server up until all are here
		for range loads {
			all.Go(func() {
				w := httptest.NewRecorder()
				e.answer(a, w, httptest.NewRequest(http.MethodGet, back.String(), nil))
				answers <- w.Code
			})
		}
		for deadline := time.Now().Add(patience); a.store.pendingOf(back.Query().Get("state")) != nil && time.Now().Before(deadline); {
			<-time.After(time.Millisecond)
		}
	})
	all.Wait()
	good := 0
	for range loads {
		if <-answers == http.StatusOK {
			good++
		}
	}
	exchanges := 0
	i.Set(func() {
		for _, request := range i.Requests {
			if request.Get("code") != "" {
				exchanges++
			}
		}
	})
	if exchanges != 1 || good == 0 {
		t.Errorf("%d exchanges, %d of %d pages say that it went well", exchanges, good, loads)
	}
	if err := call(t, a); err != nil {
		t.Error(err)
	}
}

// An authorization server that names an interval of no sense takes nothing down.
func TestIntervalsWithoutSense(t *testing.T) {
	for _, interval := range []int64{-1, 1 << 62} {
		i := issuer.New(t)
		i.Interval = interval
		a := newAgent(t, i, func(o *Options) { o.Grant = Device })
		ctx, cancel := context.WithCancel(t.Context())
		_, err := a.SignIn(ctx, nil, func(Pending) { cancel() })
		if err == nil || !strings.Contains(err.Error(), "was stopped") {
			t.Errorf("told %v", err)
		}
	}
}

// Where no browser can be opened none was: the next process that has one opens the page.
func TestABrowserThatIsMissingOpensNothing(t *testing.T) {
	i := issuer.New(t)
	without := newAgent(t, i, func(o *Options) { o.Browser = []string{"/no/such/browser"} })
	if pending := begun(t, without); pending.Opened {
		t.Error("told that a browser was opened")
	}
	without.Close()
	with := newAgent(t, i, func(o *Options) { o.Dir = without.opt.Dir })
	var pending *Pending
	if err := call(t, with); err != nil && !errors.As(err, &pending) || i.Get(&i.Tabs) != 1 {
		t.Errorf("%v; %d tabs", err, i.Get(&i.Tabs))
	}
}
