package authorize

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/internal/peers/issuer"
)

// hanging is the way to an authorization server that answers nothing.
type hanging struct{ asked atomic.Int32 }

func (s *hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked.Add(1)
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// An authorization server that answers nothing holds up no call whose token is good, and the others once, not one after
// the other; nobody waits longer than he wants to, and nobody asks it again at once.
func TestARenewalThatHangsHoldsUpNobodyElse(t *testing.T) {
	i := issuer.New(t)
	first, file := signedIn(t, i)
	synctest.Test(t, func(t *testing.T) {
		way := &hanging{}
		a, err := New(Options{Server: i.Endpoint(), Dir: filepath.Dir(file), Store: "file", Browser: agreeing(), Issuers: &http.Client{Transport: way}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		l := *first.login.Load()
		l.Updated, l.Renew, l.Expires = began.Add(-time.Hour), began, began.Add(30*time.Second)
		a.login.Store(&l)
		if err := a.store.save(&l); err != nil {
			t.Fatal(err)
		}
		for _, most := range []time.Duration{prompt, 0, 0} {
			asked := time.Now()
			if header, err := a.Authorization(t.Context()); header != l.header() || err != nil || time.Since(asked) > most {
				t.Fatalf("after %v the token that is still good is %q, %v", time.Since(asked), header, err)
			}
		}
		time.Sleep(time.Until(began.Add(RequestTimeout + time.Second)))
		if header, err := a.Authorization(t.Context()); header != l.header() || err != nil || way.asked.Load() != 1 {
			t.Errorf("right after a renewal that failed the token that is still good is %q, %v; asked %d times", header, err, way.asked.Load())
		}
		time.Sleep(time.Until(began.Add(time.Minute))) // and the token is no good any more
		asked := time.Now()
		wait := func(ctx context.Context, how time.Duration, tell chan<- struct{}) {
			_, err := a.Authorization(ctx)
			if failure, ok := errors.AsType[*Failure](err); !ok || !failure.Passing || !strings.Contains(err.Error(), "nothing was lost") || time.Since(asked) != how {
				t.Errorf("after %v told %v, want it after %v", time.Since(asked), err, how)
			}
			tell <- struct{}{}
		}
		short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		over := make(chan struct{})
		go wait(short, 2*time.Second, over)
		go wait(t.Context(), RequestTimeout, over)
		go wait(t.Context(), RequestTimeout, over)
		go func() { // the server has refused a request that was under way meanwhile
			err := a.Renew(short, Refusal{Authorization: l.header(), Status: http.StatusUnauthorized})
			if err == nil || strings.Contains(err.Error(), "sign in") || !strings.Contains(err.Error(), "nothing was lost") {
				t.Errorf("who was refused is told %v", err)
			}
			over <- struct{}{}
		}()
		for range 4 {
			<-over
		}
		go wait(t.Context(), RequestTimeout, over) // at once
		<-over
		if way.asked.Load() != 2 {
			t.Errorf("asked %d times", way.asked.Load())
		}
		a.Close()
	})
}

// So it is with the tokens of people who brought their own: they wait side by side, and no longer than they want to.
func TestAnExchangeThatHangsHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := &hanging{}
		e, err := NewExchanger(Options{Server: "https://tools.test/mcp", Issuer: "https://login.test", ClientID: "bridge",
			Resources: &http.Client{Transport: way}, Issuers: &http.Client{Transport: way}})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		over := make(chan struct{})
		began := time.Now()
		wait := func(ctx context.Context, token string, how time.Duration) {
			if _, err := e.Authorization(ctx, "Bearer "+token); err == nil || time.Since(began) != how {
				t.Errorf("after %v told %v, want it after %v", time.Since(began), err, how)
			}
			over <- struct{}{}
		}
		go wait(t.Context(), "ada", RequestTimeout)
		go wait(t.Context(), "bob", RequestTimeout)
		go wait(short, "ada", 2*time.Second)
		for range 3 {
			<-over
		}
	})
}
