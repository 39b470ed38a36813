package main

import (
	"math/rand/v2"

	"github.com/mcpbridge/bridge/test/calls"
)

// plan is what one call is to go through. It travels in the call's arguments, so that
// a server without memory knows it.
type plan struct {
	Nonce    string `json:"nonce"`
	Rounds   int    `json:"rounds"`   // questions one after another before the result
	Progress int    `json:"progress"` // notifications before each answer
	Size     int    `json:"size"`     // of the result, in bytes
	Fault    string `json:"fault"`
	At       int    `json:"at"` // the round that the fault is in

	tool  string
	habit string
}

// What a server or the network does to a round. After some of them the call must
// succeed nevertheless.
const (
	faultNone    = ""
	faultBusy    = "busy"     // 503 before anything ran
	faultReset   = "reset"    // connection reset after it ran
	faultHalf    = "half"     // the response breaks off
	faultGarbage = "garbage"  // no JSON
	faultID      = "other-id" // another request's id
	faultEmpty   = "empty"    // 200 without a body
	faultEnd     = "end"      // an event stream without an answer
	faultHang    = "hang"     // no answer
	faultStatus  = "status"   // 500
	faultLogin   = "login"    // 401 after the stream began
	faultClose   = "close"    // harmless: the connection ends after the answer
	faultSurplus = "surplus"  // harmless: a second response nobody asked for
	faultSlow    = "slow"     // harmless: a little late
)

var faults = []string{
	faultBusy, faultReset, faultHalf, faultGarbage, faultID, faultEmpty, faultEnd, faultHang, faultStatus, faultLogin,
	faultClose, faultSurplus, faultSlow,
}

// harmless reports whether a call must succeed in spite of the fault. A server that
// is busy for a moment is waited for.
func harmless(fault string) bool {
	return fault == faultNone || fault == faultClose || fault == faultSlow || fault == faultSurplus
}

// What a client does on the way.
const (
	habitNone   = ""
	habitCut    = "cut"    // loses its stream and resumes it
	habitTwice  = "twice"  // answers twice
	habitCancel = "cancel" // gives the call up
	habitSlow   = "slow"   // reads slowly
)

var habits = []string{habitCut, habitCut, habitTwice, habitCancel, habitSlow}

func newPlan(random *rand.Rand, nonce string, share float64) plan {
	p := plan{Nonce: nonce, tool: calls.Act, Rounds: random.IntN(3), Size: 20}
	if random.IntN(3) == 0 {
		p.tool = calls.Read
	}
	if random.IntN(3) == 0 {
		p.Progress = 1 + random.IntN(20)
	}
	switch random.IntN(40) {
	case 0:
		p.Size = 3 << 20
	case 1, 2, 3:
		p.Size = 100 << 10
	}
	if random.Float64() < share {
		p.Fault = faults[random.IntN(len(faults))]
		p.At = random.IntN(p.Rounds + 1)
		if p.Fault == faultHang && random.IntN(4) > 0 {
			p.Fault = faultReset // each hang takes a whole time-out
		}
	}
	if random.Float64() < share {
		p.habit = habits[random.IntN(len(habits))]
	}
	return p
}

func (p *plan) params() string {
	return calls.Params(p.tool, p.Nonce, p.Progress > 0, p)
}
