package budget

import (
	"errors"
	"testing"
)

func TestWhatComesBackMayBeMoreThanItsShare(t *testing.T) {
	for name, is := range map[string]struct {
		own, others, size int
		want              error
	}{
		"what would fit":                     {0, 0, 4 * mib, nil},
		"what would not":                     {0, 0, 10 * mib, nil},
		"what would not fit altogether":      {0, 0, 60 * mib, nil},
		"of who holds little":                {18 * mib, 0, 20 * mib, nil},
		"of who holds much":                  {22 * mib, 0, 20 * mib, ErrShare},
		"a little of who holds much":         {22 * mib, 0, 2 * mib, nil},
		"while others hold half":             {0, 32 * mib, 20 * mib, nil},
		"while others hold more":             {0, 37 * mib, 20 * mib, ErrFull},
		"a little while others hold as much": {0, 37 * mib, 2 * mib, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := New(64 * mib)
			b.Own().Charge(is.others)
			a := open(t, b, "address")
			open(t, b, "address").Charge(is.own)
			small, h := open(t, b, "address"), On(b.Own())
			if err := h.Return(a, 5*is.size, 2*is.size); !errors.Is(err, is.want) || err == nil && is.want != nil {
				t.Fatalf("it comes back: %v", err)
			}
			if b.Used() > 68*mib {
				t.Errorf("%d MiB of 64 are charged", b.Used()/mib)
			}
			if err := small.Take(20 << 10); err != nil {
				t.Errorf("who holds next to nothing meanwhile: %v", err)
			}
			small.Close()
			if h.Release(); b.Used() != int64(is.own+is.others) {
				t.Errorf("%d bytes stay", b.Used())
			}
		})
	}
}

func TestResultsThatWereDeliveredMakeRoomForWhatComesBack(t *testing.T) {
	b := New(64 * mib)
	var f keeper
	f.keep(open(t, b, "other"), "a result", 50*mib)
	h := On(b.Own())
	if err := h.Return(open(t, b, "address"), 100*mib, 40*mib); err != nil || h.Bytes() != 32*mib {
		t.Errorf("%d bytes are charged: %v", h.Bytes(), err)
	}
}

func TestWhatComesBackAtAnyRateLeavesHalf(t *testing.T) {
	b := New(64 * mib)
	h := On(b.Own())
	if h.ReturnOwed(100 * mib); h.Bytes() != 32*mib {
		t.Errorf("%d bytes are charged", h.Bytes())
	}
	if h.ReturnOwed(mib); h.Bytes() != 33*mib {
		t.Errorf("%d bytes are charged", h.Bytes())
	}
	none := On(nil)
	none.ReturnOwed(mib)
}
