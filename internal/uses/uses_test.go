package uses

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAValueLastsAsLongAsItIsUsed(t *testing.T) {
	var all Of[string, *int]
	ended := 0
	use := func(key string) (*int, func()) {
		return all.Use(key, func() *int { return new(int) }, func(*int) { ended++ })
	}
	one, done := use("a")
	same, alsoDone := use("a")
	other, otherDone := use("b")
	if one != same || one == other {
		t.Error("a key has two values, or two keys have one")
	}
	done()
	done() // once more counts for nothing
	if again, over := use("a"); again != one || ended != 0 {
		t.Errorf("a value that is in use is another one; %d ended", ended)
	} else {
		over()
	}
	alsoDone()
	if again, over := use("a"); again == one || ended != 1 {
		t.Errorf("a value outlives its last user; %d ended", ended)
	} else {
		over()
	}
	otherDone()
	if ended != 3 || all.Len() != 0 {
		t.Errorf("%d have ended, %d are left", ended, all.Len())
	}
}
