//go:build unix

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/test/calls"
)

// ledger accounts for every call: what ran on the server, and what its client got.
type ledger struct {
	mu        sync.Mutex
	runs      map[string]int  // by call and round
	cancelled map[string]bool // questions at which calls were
	reported  map[string]int  // failures that the client was told of, by reason
	done      map[trouble]int
	ends      map[ending]int
	faults    []string // what must not be, in words

	doubles, crossings, revived int
}

// ending is how a call ended for its client.
type ending int

const (
	gotResult ending = iota
	gotCancelled
	gotFailure // and was told so
	gotLost    // nobody told it anything that is true
)

func newLedger() *ledger {
	return &ledger{runs: map[string]int{}, cancelled: map[string]bool{}, reported: map[string]int{}, done: map[trouble]int{}, ends: map[ending]int{}}
}

// ran notes that a round was executed.
func (l *ledger) ran(nonce string, round int, once bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := calls.Question(nonce, round)
	l.runs[key]++
	if l.cancelled[key] {
		l.livesLocked("question " + key + ", whose call was cancelled")
	}
	if once && l.runs[key] > 1 {
		l.doubles++
		l.noteLocked("DOUBLED: " + key + " ran again")
	}
}

// gaveUp notes that a call was cancelled at a question: no answer to that is to reach the server.
func (l *ledger) gaveUp(question string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancelled[question] = true
}

// twice notes that something was delivered twice.
func (l *ledger) twice(nonce, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doubles++
	l.noteLocked("DOUBLED: " + nonce + ": " + what + " came twice")
}

// crossed notes that something reached a call that it was not for.
func (l *ledger) crossed(nonce, how string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.crossings++
	l.noteLocked("CROSSED: " + nonce + ": " + how)
}

// lives notes that what was ended goes on.
func (l *ledger) lives(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.livesLocked(what)
}

func (l *ledger) livesLocked(what string) {
	l.revived++
	l.noteLocked("ENDED AND GOES ON: " + what)
}

// end notes how a call ended for its client.
func (l *ledger) end(p *plan, how ending, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends[how]++
	switch how {
	case gotFailure:
		l.reported[shorten(reason)]++
	case gotLost:
		l.noteLocked(fmt.Sprintf("LOST: %+v: %s", *p, reason))
	}
}

// did notes a trouble.
func (l *ledger) did(what trouble) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done[what]++
}

func (l *ledger) noteLocked(text string) {
	if len(l.faults) < 50 {
		l.faults = append(l.faults, time.Now().Format("15:04:05.000 ")+text)
	}
}

// ids are what makes the same reasons different texts.
var ids = regexp.MustCompile(`\s+|http://[^ ]+|127\.0\.0\.1:\d+(->127\.0\.0\.1:\d+)?`)

func shorten(reason string) string {
	text := strings.TrimSpace(ids.ReplaceAllString(reason, " "))
	return text[:min(len(text), 110)]
}

// bad returns how many things were as none may be. strict: failures are bad even if they
// are reported.
func (l *ledger) bad(strict bool) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.doubles + l.crossings + l.revived + l.ends[gotLost]
	if strict {
		n += l.ends[gotFailure]
	}
	return n
}

// report prints the account.
func (l *ledger) report(w io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	calls := 0
	for _, n := range l.ends {
		calls += n
	}
	fmt.Fprintf(w, "calls %d", calls)
	for _, t := range troubles {
		fmt.Fprintf(w, ", %s %d", t, l.done[t])
	}
	fmt.Fprintf(w, ", results %d, cancelled %d, lost %d, doubled %d, crossed %d, revived %d, reported failures %d\n",
		l.ends[gotResult], l.ends[gotCancelled], l.ends[gotLost], l.doubles, l.crossings, l.revived, l.ends[gotFailure])
	for _, reason := range slices.SortedFunc(maps.Keys(l.reported), func(a, b string) int { return cmp.Compare(l.reported[b], l.reported[a]) }) {
		fmt.Fprintf(w, "%8d  %s\n", l.reported[reason], reason)
	}
	for _, text := range l.faults {
		fmt.Fprintln(w, text)
	}
}
