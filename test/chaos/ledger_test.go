package main

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// An account that finds nothing wrong is worth something only when it would.
func TestLedgerFindsWhatMustNotBe(t *testing.T) {
	for name, happen := range map[string]func(*ledger){
		"a tool that ran twice": func(l *ledger) { l.ran("c1", 0, true); l.ran("c1", 0, true) },
		"another call's answer": func(l *ledger) { l.crossed("c1", "x") },
		"a lost call":           func(l *ledger) { l.end(&plan{}, endLost, "") },
		"a call without an end": func(l *ledger) { l.end(&plan{}, endHung, "") },
		"an innocent failure":   func(l *ledger) { l.end(&plan{}, endInnocent, "") },
		"more harm than faults": func(l *ledger) { l.end(&plan{}, endHarmed, ""); l.end(&plan{}, endHarmed, ""); l.spread() },
	} {
		l := newLedger()
		happen(l)
		var report strings.Builder
		l.report(&report, true)
		if l.bad() != 1 {
			t.Errorf("%s: %d bad\n%s", name, l.bad(), report.String())
		}
	}
	l := newLedger()
	l.ran("c1", 0, false)
	l.ran("c1", 0, false) // may be asked again
	l.ran("c1", 1, true)
	l.end(&plan{}, endResult, "")
	l.end(&plan{}, endCancelled, "")
	l.spread()
	l.end(&plan{}, endHarmed, "")
	if l.bad() != 0 {
		t.Errorf("%d bad", l.bad())
	}
}

func TestPlansAreRepeatable(t *testing.T) {
	first, second := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(1, 2))
	for range 100 {
		if a, b := newPlan(first, "c", 0.5), newPlan(second, "c", 0.5); a != b {
			t.Fatalf("%+v, %+v", a, b)
		}
	}
}
