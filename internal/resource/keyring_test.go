package resource

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/peers/issuer"
)

// among is an endpoint that takes tokens of an issuer, one of a process.
func among(keys *Keys, s *issuer.Signer, trust string, log *bytes.Buffer) *Resource {
	return Check(CheckOptions{Path: "/mcp", Public: "https://tools.example.com", Issuer: s.URL, Keys: keys, Trust: trust,
		Issuers: &http.Client{Transport: inMemory{s}}, Log: zerolog.New(log)})
}

func wantStatus(t *testing.T, what string, r *Resource, token string, want int) {
	t.Helper()
	if status := statusOf(r, token); status != want {
		t.Errorf("%s: %d, want %d", what, status, want)
	}
}

// A signing key that the issuer had withdrawn was good until somebody brought a token under an unknown one.
func TestAWithdrawnKeyIsRefusedInTime(t *testing.T) {
	for maxAge, after := range map[string]time.Duration{"": keysAtLeast, "0": keysAtLeast, "1200": 20 * time.Minute, "86400": keysAtMost} {
		s := issuer.NewSigner(t) // outside of the bubble
		synctest.Test(t, func(t *testing.T) {
			log := &bytes.Buffer{}
			s.Set(func() { s.MaxAge = maxAge })
			r := among(nil, s, "", log)
			defer r.Close()
			claims := s.Claims("ada", endpoint)
			claims["exp"] = time.Now().Add(3 * keysAtMost).Unix()
			token := s.Sign(claims)
			wantStatus(t, maxAge+": before", r, token, http.StatusOK)
			s.Renew()
			time.Sleep(after - time.Second)
			wantStatus(t, maxAge+": while the key may be known", r, token, http.StatusOK) // and remembered
			time.Sleep(time.Second)
			synctest.Wait()
			wantStatus(t, maxAge+": of a key that is gone", r, token, http.StatusUnauthorized)
			wantStatus(t, maxAge+": of the new key", r, s.Sign(claims), http.StatusOK)
		})
	}
}

// Nobody waits for the keys that are read again, and nothing that was found good is judged anew.
func TestKeysAreReadAgainInTheBackground(t *testing.T) {
	s := issuer.NewSigner(t) // outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		log := &bytes.Buffer{}
		way := &gated{way: inMemory{s}, open: make(chan struct{})}
		r := Check(CheckOptions{Path: "/mcp", Public: "https://tools.example.com", Issuer: s.URL, Issuers: &http.Client{Transport: way}, Log: zerolog.New(log)})
		defer r.Close()
		wantStatus(t, "before", r, s.Sign(s.Claims("ada", endpoint)), http.StatusOK)
		way.shut.Store(true)
		time.Sleep(keysAtLeast)
		synctest.Wait()
		if !way.waits.Load() {
			t.Fatal("nobody asks")
		}
		began := time.Now()
		wantStatus(t, "while the issuer thinks", r, s.Sign(s.Claims("grace", endpoint)), http.StatusOK)
		if time.Since(began) > 0 {
			t.Error("somebody has waited")
		}
		way.shut.Store(false)
		close(way.open)
	})
}

// gated is a way to an issuer that holds requests up.
type gated struct {
	way         http.RoundTripper
	shut, waits atomic.Bool
	open        chan struct{}
}

func (g *gated) RoundTrip(r *http.Request) (*http.Response, error) {
	if g.shut.Load() {
		g.waits.Store(true)
		select {
		case <-g.open:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return g.way.RoundTrip(r)
}

// An endpoint that ends does not wait for an issuer that hangs.
func TestKeysThatAreReadHoldUpNoEnd(t *testing.T) {
	s := issuer.NewSigner(t)
	synctest.Test(t, func(t *testing.T) {
		way := &gated{way: inMemory{s}, open: make(chan struct{})}
		r := Check(CheckOptions{Path: "/mcp", Public: "https://tools.example.com", Issuer: s.URL, Issuers: &http.Client{Transport: way}, Log: zerolog.Nop()})
		wantStatus(t, "before", r, s.Sign(s.Claims("ada", endpoint)), http.StatusOK)
		way.shut.Store(true)
		time.Sleep(keysAtLeast)
		synctest.Wait()
		began := time.Now()
		r.Close()
		if took := time.Since(began); took > 0 || !way.waits.Load() {
			t.Errorf("the end took %v; asked %v", took, way.waits.Load())
		}
	})
}

// ending ends an endpoint as soon as the issuer has answered a request.
type ending struct {
	way http.RoundTripper
	end func()
}

func (e *ending) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := e.way.RoundTrip(r)
	if strings.Contains(r.URL.Path, "keys") || strings.Contains(r.URL.Path, "jwks") {
		e.end()
	}
	return resp, err
}

// An endpoint that ended just after its issuer had given its keys looked into keys that it did not have.
func TestAnEndpointThatEndsWhileItsKeysAreReadRefuses(t *testing.T) {
	s := issuer.NewSigner(t)
	way := &ending{way: http.DefaultTransport}
	k := &keySet{issuer: s.URL, client: &http.Client{Transport: way}, log: zerolog.Nop()}
	k.ctx, k.stop = context.WithCancel(t.Context())
	ended := false
	way.end = func() { ended = true; k.stop() }
	for range 2 {
		if _, _, _, err := k.open(s.Sign(s.Claims("ada", endpoint))); !errors.Is(err, errNoKeys) {
			t.Errorf("it says %v", err)
		}
	}
	if !ended {
		t.Error("no keys were read")
	}
}

func TestWhileTheIssuerIsAwayKeysThatAreKnownStay(t *testing.T) {
	s := issuer.NewSigner(t) // outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		log := &bytes.Buffer{}
		r := among(nil, s, "", log)
		defer r.Close()
		claims := s.Claims("ada", endpoint)
		claims["exp"] = time.Now().Add(24 * time.Hour).Unix()
		token := s.Sign(claims)
		wantStatus(t, "before", r, token, http.StatusOK)
		s.Set(func() { s.Broken = 500 })
		time.Sleep(2 * keysAtMost)
		synctest.Wait()
		wantStatus(t, "while it is away", r, token, http.StatusOK)
		if !strings.Contains(log.String(), "keys cannot be had") {
			t.Errorf("the log says %s", log)
		}
		s.Renew()
		s.Set(func() { s.Broken = 0 })
		time.Sleep(keysAfterFail)
		synctest.Wait()
		wantStatus(t, "when it is back, without the key", r, token, http.StatusUnauthorized)
	})
}

// An issuer may have its keys somewhere else by now.
func TestKeysAreFoundWhereTheIssuerHasThemNow(t *testing.T) {
	s := issuer.NewSigner(t) // outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		log := &bytes.Buffer{}
		r := among(nil, s, "", log)
		defer r.Close()
		wantStatus(t, "before", r, s.Sign(s.Claims("ada", endpoint)), http.StatusOK)
		s.Renew()
		s.Set(func() { s.KeysAt = "/moved" })
		time.Sleep(keysAtLeast)
		synctest.Wait()
		wantStatus(t, "under a key that is there", r, s.Sign(s.Claims("ada", endpoint)), http.StatusOK)
	})
}

// A reload while the issuer is down had everybody refused who was served before.
func TestKeysOutliveAnEndpoint(t *testing.T) {
	s := issuer.NewSigner(t) // outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		keys, log := NewKeys(), &bytes.Buffer{}
		before := among(keys, s, "a", log)
		claims := s.Claims("ada", endpoint)
		claims["exp"] = time.Now().Add(24 * time.Hour).Unix()
		wantStatus(t, "before", before, s.Sign(claims), http.StatusOK)
		s.Set(func() { s.Broken = 500 })
		after, otherwise := among(keys, s, "a", log), among(keys, s, "b", log)
		before.Close()
		before.Close()
		wantStatus(t, "of the endpoint that took its place", after, s.Sign(claims), http.StatusOK)
		wantStatus(t, "where the issuer is trusted for other reasons", otherwise, s.Sign(claims), http.StatusServiceUnavailable)
		s.Renew()
		s.Set(func() { s.Broken = 0 })
		time.Sleep(keysAtMost)
		synctest.Wait()
		wantStatus(t, "under a new key", after, s.Sign(claims), http.StatusOK)
		after.Close()
		otherwise.Close()
		asked := s.KeysAsked
		time.Sleep(24 * time.Hour)
		if keys.known.Len() > 0 || s.KeysAsked != asked {
			t.Error("keys that no endpoint wants are known, or asked for")
		}
	})
}

func TestHowLongKeysAreUsed(t *testing.T) {
	for says, want := range map[string]time.Duration{
		"": keysAtLeast, "max-age=600": 10 * time.Minute, "public, Max-Age=\"900\", must-revalidate": 15 * time.Minute, "max-age=1": keysAtLeast,
		"max-age=99999999999": keysAtLeast, "max-age=2000000000": keysAtMost, "max-age=-1": keysAtLeast, "no-store, max-age=3000": keysAtLeast,
		"max-age=3000, no-cache": keysAtLeast, "s-maxage=3000": keysAtLeast,
	} {
		if got := lifeOf(http.Header{"Cache-Control": {says}}); got != want {
			t.Errorf("%q: %v, want %v", says, got, want)
		}
	}
}
