package authorize

import (
	"slices"
	"strconv"
	"testing"
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
