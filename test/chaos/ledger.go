package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"sync"

	"github.com/mcpbridge/bridge/test/calls"
)

// ledger accounts for every call: what ran on the server, and what its client got.
type ledger struct {
	mu       sync.Mutex
	runs     map[string]int // by call and round
	seen     map[string]bool
	outcomes map[string]int
	reasons  map[string]int
	faults   []string // what must not be, in words

	doubled, crossings int
	spreads            int // faults that may reach one other call
}

// The ends of a call as its client sees them.
const (
	endResult    = "result"
	endError     = "error, as the fault gives reason for"
	endOutage    = "error, for an outage of the server"
	endHarmed    = "error, harmed by another call's stray response or refused credentials"
	endCancelled = "cancelled"
	endLost      = "LOST"
	endHung      = "HUNG"
	endInnocent  = "FAILED WITHOUT A REASON"
)

// port makes the same reasons of two servers the same text.
var port = regexp.MustCompile(`http://127\.0\.0\.1:\d+|at byte \d+|dial tcp.*`)

func newLedger() *ledger {
	return &ledger{runs: map[string]int{}, seen: map[string]bool{}, outcomes: map[string]int{}, reasons: map[string]int{}}
}

// ran notes that a round was executed.
func (l *ledger) ran(nonce string, round int, once bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := calls.Question(nonce, round)
	l.runs[key]++
	if once && l.runs[key] > 1 {
		l.doubled++
		l.noteLocked("DOUBLED: " + key)
	}
}

// first reports whether something happens to a call for the first time.
func (l *ledger) first(nonce, what string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := nonce + " " + what
	first := !l.seen[key]
	l.seen[key] = true
	return first
}

// spread notes a fault that may harm one other call besides its own.
func (l *ledger) spread() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spreads++
}

// crossed notes that something reached a call that it was not for.
func (l *ledger) crossed(nonce, how string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.crossings++
	l.noteLocked("CROSSED: " + nonce + ": " + how)
}

// end notes how a call ended for its client.
func (l *ledger) end(p *plan, how, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outcomes[how]++
	if reason != "" {
		l.reasons[fmt.Sprintf("%s: %s (fault %q)", how, port.ReplaceAllString(reason, ""), p.Fault)]++
	}
	if how == endLost || how == endHung || how == endInnocent {
		l.noteLocked(fmt.Sprintf("%s: %s %+v: %s", how, p.Nonce, *p, reason))
	}
}

// note keeps a remark for the report.
func (l *ledger) note(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reasons[text]++
}

func (l *ledger) noteLocked(text string) {
	if len(l.faults) < 20 {
		l.faults = append(l.faults, text)
	}
}

// bad returns how many calls ended as none may.
func (l *ledger) bad() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.doubled + l.crossings + l.outcomes[endLost] + l.outcomes[endHung] + l.outcomes[endInnocent] + max(0, l.outcomes[endHarmed]-l.spreads)
}

// report prints the account.
func (l *ledger) report(w io.Writer, verbose bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, how := range []string{endResult, endError, endOutage, endHarmed, endCancelled, endInnocent, endLost, endHung} {
		fmt.Fprintf(w, "%8d  %s\n", l.outcomes[how], how)
	}
	fmt.Fprintf(w, "%8d  (faults that may harm one other call)\n", l.spreads)
	fmt.Fprintf(w, "%8d  DOUBLED\n%8d  CROSSED\n", l.doubled, l.crossings)
	if verbose {
		for _, reason := range slices.SortedFunc(maps.Keys(l.reasons), func(a, b string) int { return cmp.Compare(l.reasons[b], l.reasons[a]) }) {
			fmt.Fprintf(w, "%8d  %s\n", l.reasons[reason], reason)
		}
	}
	for _, text := range l.faults {
		fmt.Fprintln(w, text)
	}
}
