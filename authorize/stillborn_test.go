package authorize

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/peers/issuer"
)

// An authorization server that gives tokens which have expired when they come is named with the
// lifetime that it states, asked once, and a person is not sent to it again and again.
func TestATokenThatIsBornExpiredNamesItsIssuer(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"an account of its own": func(o *Options) {
			o.Grant, o.ClientID, o.ClientSecret, o.Issuer = ClientCredentials, "machine", "hush", strings.TrimSuffix(o.Server, "/mcp")
		},
		"a person": nil,
	} {
		t.Run(name, func(t *testing.T) {
			i := issuer.New(t)
			i.Life = -100 * time.Second
			a := newAgent(t, i, change)
			for range 3 {
				err := call(t, a)
				if err == nil || !strings.Contains(err.Error(), "expires_in is -100") || !strings.Contains(err.Error(), hostOf(i.URL)) {
					t.Errorf("told %v", err)
				}
			}
			if n := len(i.Requests); i.Get(&i.Tabs) > 1 || n > 2 { // a code takes two of them: the page, and the token
				t.Errorf("asked %d times, with %d tabs", n, i.Tabs)
			}
			if change == nil { // another page would be opened no sooner than tabEvery
				return
			}
			i.Set(func() { i.Life = time.Hour })
			a.useless.Load().at = time.Now().Add(-again)
			if err := call(t, a); err != nil {
				t.Errorf("once it is repaired: %v", err)
			}
		})
	}
}

// So it is with a renewal; the refresh token that came with such a token is not lost.
func TestARenewalThatIsBornExpiredLosesNothing(t *testing.T) {
	i := issuer.New(t)
	a := newAgent(t, i, nil)
	if err := call(t, a); err != nil {
		t.Fatal(err)
	}
	age(t, a)
	i.Set(func() { i.Life = -time.Second })
	for range 3 {
		if err := call(t, a); err == nil || !strings.Contains(err.Error(), "expires_in is -1") {
			t.Errorf("told %v", err)
		}
	}
	if n := i.Get(&i.Renewed); n != 1 {
		t.Errorf("renewed %d times", n)
	}
	i.Set(func() { i.Life = time.Hour })
	a.mu.Lock()
	a.renewal.again = time.Now()
	a.mu.Unlock()
	if err := call(t, a); err != nil || i.Get(&i.Tabs) != 1 || i.Get(&i.Reused) != 0 {
		t.Errorf("once it is repaired: %v; %d tabs, %d tokens that came twice", err, i.Tabs, i.Reused)
	}
}
