//go:build unix

package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"
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

// The tools: one that changes the world, one that may be asked again.
const (
	toolAct  = "act"
	toolRead = "read"
)

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
	p := plan{Nonce: nonce, tool: toolAct, Rounds: random.IntN(3), Progress: random.IntN(4) == 0}
	if random.IntN(3) == 0 {
		p.tool = toolRead
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
	arguments, err := json.Marshal(p)
	if err != nil {
		panic(err) // a struct of strings and numbers
	}
	token := ""
	if p.Progress {
		token = fmt.Sprintf(`,"_meta":{"progressToken":%q}`, p.Nonce)
	}
	return fmt.Sprintf(`{"name":%q,"arguments":%s%s}`, p.tool, arguments, token)
}

// question is what the server asks before a round, answer what the person says to it:
// both name the call, so that an answer that went astray is noticed.
func question(nonce string, round int) string { return fmt.Sprintf("%s/%d", nonce, round) }

func answer(question string) string { return "answer to " + question }

// state is what the server has the bridge bring back with the answer.
func state(nonce string, round int) string {
	mac := hmac.New(sha256.New, []byte("replicas"))
	fmt.Fprintf(mac, "%s %d", nonce, round)
	return hex.EncodeToString(mac.Sum(nil))
}
