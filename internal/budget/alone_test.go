package budget

import (
	"testing"
	"testing/synctest"
	"time"
)

// presser is one of several things that may have to be more than there is.
type presser struct {
	alone Alone
	hold  Hold
}

func (p *presser) press(bytes int) error { return p.alone.Press(&p.hold, bytes) }

// full returns two of them on a budget of 8 MiB of which nothing is left.
func full() (b *Budget, one, another *presser) {
	b = New(8 * mib)
	b.Own().Charge(8 * mib)
	return b, &presser{hold: On(b.Guest("one"))}, &presser{hold: On(b.Guest("another"))}
}

func TestOneAtATimeMayBeMoreThanThereIs(t *testing.T) {
	_, one, another := full()
	if err := one.press(mib); err != nil {
		t.Fatal(err)
	}
	if err := another.press(1); !Short(err) {
		t.Errorf("another one is alone, too: %v", err)
	}
	if err := one.press(2 * mib); !Short(err) {
		t.Errorf("it may be more by above a quarter: %v", err)
	}
	if err := another.press(mib); err != nil { // one was refused, and is alone no more
		t.Error(err)
	}
	one.alone.End()
	if err := one.press(1); !Short(err) {
		t.Errorf("who is not alone ends that for who is: %v", err)
	}
	another.alone.End()
	another.hold.Release()
	if err := one.press(mib); err != nil {
		t.Error(err)
	}
	if one.alone.End(); one.hold.Bytes() != 2*mib {
		t.Errorf("%d bytes are charged", one.hold.Bytes())
	}
}

func TestWhoIsAloneAndStallsMakesRoomForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, one, another := full()
		for range 9 { // slowly, but it comes
			if err := one.press(64 << 10); err != nil {
				t.Fatal(err)
			}
			time.Sleep(stalled - 1)
			if err := another.press(1); !Short(err) {
				t.Fatalf("beside one that goes on: %v", err)
			}
		}
		time.Sleep(time.Nanosecond)
		if err := another.press(64 << 10); err != nil {
			t.Errorf("after one that has stalled: %v", err)
		}
		if err := one.press(64 << 10); !Short(err) {
			t.Errorf("both are alone: %v", err)
		}
	})
}

// Whatever is owed, the total has its bound.
func TestWhatIsFinishedMayBeMoreThanThereIsByHalf(t *testing.T) {
	b, one, another := full()
	if err := one.press(mib); err != nil {
		t.Fatal(err)
	}
	for another.hold.Finish(64<<10) == nil {
	}
	if b.Used() != 12*mib {
		t.Errorf("%d bytes of %d are charged", b.Used(), b.Limit())
	}
}
