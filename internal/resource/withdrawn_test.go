package resource

import (
	"bytes"
	"encoding/json"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcpbridge/bridge/internal/peers/issuer"
)

// publish has an issuer be known for these keys from now on.
func publish(keys *keySet, list []jose.JSONWebKey) {
	keys.known.Store(&published{keys.known.Load().version + 1, nil, list})
}

// lasting is an endpoint with something that was opened with a token under this head: what tells whether its key is withdrawn,
// what its issuer publishes, and the token.
func lasting(t *testing.T, head string) (r *Resource, keys *keySet, token string, withdrawn func() bool) {
	t.Helper()
	s := issuer.NewSigner(t)
	r = among(nil, s, "", &bytes.Buffer{})
	t.Cleanup(r.Close)
	said, err := json.Marshal(s.Claims("ada", endpoint))
	if err != nil {
		t.Fatal(err)
	}
	token = s.SignText(head, string(said))
	wantStatus(t, "at first", r, token, http.StatusOK)
	return r, r.source.(*checked).tokens.keys, token, r.Withdrawn("Bearer " + token)
}

const (
	headNamed   = `{"alg":"ES256","kid":"1","typ":"at+jwt"}`
	headUnnamed = `{"alg":"ES256","typ":"at+jwt"}`
)

// What was opened with a token hears that its key is gone, also when nobody brings that token again, and not of others that go.
func TestWhatLastsHearsThatItsKeyIsWithdrawn(t *testing.T) {
	s, old := issuer.NewSigner(t), issuer.NewSigner(t) // outside of the bubble
	synctest.Test(t, func(t *testing.T) {
		r := among(nil, s, "", &bytes.Buffer{})
		defer r.Close()
		keys := r.source.(*checked).tokens.keys
		claims := s.Claims("ada", endpoint)
		claims["exp"] = time.Now().Add(3 * keysAtMost).Unix()
		auth := "Bearer " + s.Sign(claims)
		wantStatus(t, "at first", r, s.Sign(claims), http.StatusOK)
		withdrawn := r.Withdrawn(auth)
		want := func(when string, want bool) {
			t.Helper()
			if withdrawn() != want {
				t.Errorf("%s: %v, want %v", when, !want, want)
			}
		}
		want("at first", false)
		mine := keys.known.Load()
		others := among(nil, old, "", &bytes.Buffer{})
		defer others.Close()
		wantStatus(t, "of another issuer", others, old.Sign(old.Claims("ada", endpoint)), http.StatusOK)
		theirs := others.source.(*checked).tokens.keys.known.Load()
		publish(keys, slices.Concat(theirs.keys, mine.keys))
		want("another key came", false)
		publish(keys, theirs.keys)
		want("its own is gone", true)
		publish(keys, mine.keys)
		want("its own is back", false)
		s.Renew()
		time.Sleep(keysAtLeast)
		synctest.Wait()
		want("withdrawn by the issuer", true)
		if withdrawn := r.Withdrawn(auth); !withdrawn() {
			t.Error("what is opened with it then is good")
		}
	})
}

// An issuer may go on publishing a key and describe it otherwise. What a token had opened heard that its key was gone, though new requests
// with the same token were taken.
func TestAKeyIsWithdrawnOnceTokensUnderItAreRefused(t *testing.T) {
	for name, describe := range map[string]func(key *jose.JSONWebKey){
		"as before":             func(*jose.JSONWebKey) {},
		"for no algorithm":      func(key *jose.JSONWebKey) { key.Algorithm = "" },
		"for another algorithm": func(key *jose.JSONWebKey) { key.Algorithm = "ES384" },
		"under another name":    func(key *jose.JSONWebKey) { key.KeyID = "2" },
		"under none":            func(key *jose.JSONWebKey) { key.KeyID = "" },
	} {
		for _, head := range []string{headNamed, headUnnamed} {
			r, keys, token, withdrawn := lasting(t, head)
			before := keys.known.Load().keys
			after := slices.Clone(before)
			describe(&after[0])
			for _, list := range [][]jose.JSONWebKey{after, before, slices.Concat(after, before)} {
				publish(keys, list)
				if refused := statusOf(r, token) != http.StatusOK; withdrawn() != refused {
					t.Errorf("%s, %s: withdrawn %v, refused %v", name, head, !refused, refused)
				}
			}
		}
	}
}

// The reader of a connection and the janitor ask at the same time. One of them heard that a key was gone which was there all the time, when
// what is published became something else meanwhile.
func TestNobodyHearsThatAKeyIsGoneThatStays(t *testing.T) {
	_, keys, _, withdrawn := lasting(t, headNamed)
	mine := keys.known.Load().keys
	var over atomic.Bool
	var wrong atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for !over.Load() {
				if withdrawn() {
					wrong.Add(1)
				}
			}
		})
	}
	for range 200_000 {
		publish(keys, mine)
	}
	over.Store(true)
	all.Wait()
	if n := wrong.Load(); n > 0 {
		t.Errorf("%d times", n)
	}
}

// What is published may be a megabyte, and connections last: each kept all that had been published as it was opened.
func TestWhatLastsKeepsNothingButItsKey(t *testing.T) {
	_, keys, _, withdrawn := lasting(t, headNamed)
	first := weak.Make(keys.known.Load())
	publish(keys, slices.Clone(keys.known.Load().keys))
	if withdrawn() {
		t.Error("its key is gone")
	}
	second := weak.Make(keys.known.Load())
	publish(keys, nil)
	if !withdrawn() {
		t.Error("its key is there")
	}
	runtime.GC()
	if first.Value() != nil || second.Value() != nil {
		t.Errorf("what was published before is kept: %v, %v", first.Value() != nil, second.Value() != nil)
	}
	runtime.KeepAlive(withdrawn)
}
