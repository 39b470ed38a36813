package mount

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestLogMessagesReachAModernCallerWhileNobodyElseWantsAny: nobody can tell whose
// they are, not even for a while afterwards.
func TestLogMessagesReachAModernCallerWhileNobodyElseWantsAny_C8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &logGate{}
		mine, done := g.visit("me")
		again, alsoDone := g.visit("me")
		if !mine() || !again() {
			t.Error("two calls of one caller are in each other's way")
		}
		theirs, theirsDone := g.visit("other")
		if mine() || theirs() {
			t.Error("delivered while two callers want messages")
		}
		theirsDone()
		if mine() {
			t.Error("delivered while a message of another's call may be late")
		}
		time.Sleep(afterwards + time.Second)
		if !mine() {
			t.Error("withheld when nobody else wants any")
		}
		done()
		alsoDone()
		_, left := g.visit("session 1")
		if !g.crowded() {
			t.Error("delivered while a session wants messages, too")
		}
		left()
		g.forget("session 1")
		if g.crowded() {
			t.Error("withheld from the only one who wants any")
		}
		for i := range 3 * maxCallers {
			_, leave := g.visit(fmt.Sprint(i))
			leave()
		}
		if n := len(g.callers); n > maxCallers+1 {
			t.Errorf("%d callers are remembered", n)
		}
	})
}
