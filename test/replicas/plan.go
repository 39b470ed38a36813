//go:build unix

package main

import (
	"math/rand/v2"
	"time"

	"github.com/mcpbridge/bridge/test/calls"
)

// plan is what one call is to go through. It travels in the call's arguments, so that a
// server without memory knows it.
type plan struct {
	Nonce    string        `json:"nonce"`
	Rounds   int           `json:"rounds"` // questions one after another before the result
	Progress bool          `json:"progress"`
	Work     time.Duration `json:"work"` // of each round

	tool  string
	habit string
	think time.Duration // of the person, before each answer
}

// What a client does on the way.
const (
	habitNone   = ""
	habitCut    = "cut"    // loses its stream and comes back for it
	habitTwice  = "twice"  // answers twice
	habitCancel = "cancel" // gives the call up while it is asked
	habitAgain  = "again"  // comes back for a stream that it has had whole
)

var habits = []string{habitNone, habitNone, habitNone, habitCut, habitTwice, habitCancel, habitAgain}

func newPlan(random *rand.Rand, nonce string) plan {
	p := plan{Nonce: nonce, tool: calls.Act, Rounds: random.IntN(3), Progress: random.IntN(4) == 0}
	if random.IntN(3) == 0 {
		p.tool = calls.Read
	}
	if random.IntN(4) == 0 {
		p.Work = time.Duration(random.IntN(300)) * time.Millisecond
	}
	if random.IntN(3) == 0 {
		p.think = time.Duration(random.IntN(1000)) * time.Millisecond
	}
	p.habit = habits[random.IntN(len(habits))]
	return p
}

func (p *plan) params() string {
	return calls.Params(p.tool, p.Nonce, p.Progress, p)
}
