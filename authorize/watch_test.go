package authorize

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/mcpbridge/bridge/internal/peers/issuer"

	"golang.org/x/oauth2"
)

// steps collects what an agent tells.
type steps struct {
	mu   sync.Mutex
	told []string
}

func (s *steps) note(step Step, outcome Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, string(step)+" "+string(outcome))
}

func (s *steps) has(want string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.told, want)
}

func TestWhatComesOfEachStepIsTold(t *testing.T) {
	i := issuer.New(t)
	var seen steps
	a := newAgent(t, i, func(o *Options) { o.Watch = seen.note })
	if err := call(t, a); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"discovery ok", "registration ok", "token ok", "sign_in ok"} {
		if !seen.has(want) {
			t.Errorf("%q was not told, but %q", want, seen.told)
		}
	}
}

func TestOutcomesOfErrors(t *testing.T) {
	for want, err := range map[Outcome]error{
		OutcomeOK:          nil,
		OutcomeExpired:     failf(errNobody, "nobody"),
		OutcomeRefused:     &oauth2.RetrieveError{ErrorCode: "invalid_grant"},
		OutcomeUnavailable: errors.Join(context.DeadlineExceeded),
	} {
		if got := outcomeOf(err); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}
