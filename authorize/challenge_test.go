package authorize

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/peers/issuer"
)

// Scopes are a server's, and as many as a document has room for: comparing each with each took minutes.
func TestManyScopesAreGoneOverOnce(t *testing.T) {
	var scopes, others []string
	for i := range 300_000 {
		scopes, others = append(scopes, strconv.Itoa(i)), append(others, strconv.Itoa(i+1))
	}
	if !covers(scopes, scopes) || covers(scopes, others) || len(union(scopes, others)) != len(scopes)+1 {
		t.Error("scopes are lost")
	}
	if got, want := union([]string{"b", "a", "b"}, []string{"c", "a", "c"}), []string{"b", "a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !covers(nil, nil) || !covers([]string{"a"}, nil) || covers(nil, []string{"a"}) {
		t.Error("no scopes")
	}
}

// What a server wants is asked for as far as a page's address has room: that of the last request
// first, then what was given.
func TestScopesWithoutEndAreCut(t *testing.T) {
	const bound = 4096
	many := func(name string) []string {
		var scopes []string
		for n := range 4000 {
			scopes = append(scopes, name+strconv.Itoa(n))
		}
		return scopes
	}
	i := issuer.New(t)
	i.Scopes = many("listed")
	a := newAgent(t, i, nil)
	if err := call(t, a); err != nil {
		t.Fatal(err)
	}
	if n := len(strings.Join(a.Login().Requested, " ")); n > bound || n < bound/2 {
		t.Errorf("of the metadata's scopes %d bytes were asked for", n)
	}
	refused := wants(a, strings.Join(many("wanted"), " "))
	if n := len(strings.Join(refused.read().scopes, " ")); n > bound || n < bound/2 {
		t.Errorf("a challenge names %d bytes of scopes", n)
	}
	at := &place{meta: &metadata{}}
	at.meta.Issuer = a.Login().Issuer
	for _, test := range []struct {
		refused *Refusal
		want    string
	}{{refused, "wanted0 wanted1"}, {wants(a, "something"), "something listed0 listed1"}} {
		next := &attempt{agent: a, refused: *test.refused, asked: test.refused.read(), more: true}
		scopes := strings.Join(next.scopes(at), " ")
		if !strings.HasPrefix(scopes, test.want) || len(scopes) > bound {
			t.Errorf("%d bytes are asked for, and first %.30q instead of %q", len(scopes), scopes, test.want)
		}
	}
}
