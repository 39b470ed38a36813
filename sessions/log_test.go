package sessions

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEmptyLogHoldsNoMemory(t *testing.T) {
	want(t, "allocations", testing.AllocsPerRun(100, func() {
		var l Log
		_, _, _ = l.After(1)
		_ = l.Last()
	}), 0)
}

// add appends within the limits.
func (l *Log) add(s string) {
	l.Append(ev(s))
	l.Bound(l.Last())
}

func TestLogKeepsWhatIsNotTaken(t *testing.T) {
	l := Log{limits: Limits{Events: 1}}
	for _, s := range []string{"a", "b", "c"} {
		l.Append(ev(s))
		l.Bound(1)
	}
	want(t, "first", l.First(), 2)
	want(t, "over", l.Over(), true)
}

func TestLogIsBoundedByEventsAndBytes_E20(t *testing.T) {
	l := Log{limits: Limits{Events: 3, Bytes: 10}}
	for _, s := range []string{"aa", "bb", "cc", "dd"} {
		l.add(s)
	}
	want(t, "first", l.First(), 2)
	l.add("eeeeeeee")
	want(t, "first", l.First(), 4)
	l.add(strings.Repeat("f", 50)) // alone above the limit: kept
	want(t, "first", l.First(), 6)
	want(t, "last", l.Last(), 6)
	seq, got, ok := l.After(0)
	want(t, "newest", len(got), 50)
	want(t, "number", seq, 6)
	want(t, "held", ok, true)
	_, _, ok = l.After(6)
	want(t, "not yet", ok, false)
}

func TestLogLeavesNumbersOut(t *testing.T) {
	var l Log
	l.Leap(2)
	l.Append(ev("a"))
	l.Leap(9)
	l.Leap(5) // which is behind
	l.Append(ev("b"))
	want(t, "last", l.Last(), 10)
	want(t, "first", l.First(), 1)
	for after, next := range map[uint64]uint64{0: 3, 2: 3, 3: 10, 9: 10, 10: 0} {
		seq, _, _ := l.After(after)
		want(t, "next", seq, next)
	}
}

func TestLogAgreesWithAPlainList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{Events: rapid.IntRange(1, 5).Draw(t, "events"), Bytes: rapid.IntRange(1, 20).Draw(t, "bytes")}
		l := Log{limits: limits}
		var all [][]byte
		for _, op := range rapid.SliceOf(rapid.IntRange(-3, 9)).Draw(t, "ops") {
			if op < 0 {
				l.Trim(uint64(max(0, len(all)+op+1)))
				continue
			}
			data := []byte(strings.Repeat("x", op))
			all = append(all, data)
			if got := l.Append(data); got != uint64(len(all)) {
				t.Fatalf("seq = %d, want %d", got, len(all))
			}
			l.Bound(l.Last())
		}
		bytes := 0
		for before := l.First() - 1; before < l.Last(); before++ {
			seq, got, ok := l.After(before)
			if !ok || seq != before+1 || string(got) != string(all[before]) {
				t.Fatalf("event after %d = %d, %q, %t", before, seq, got, ok)
			}
			bytes += len(got)
		}
		if n := l.Last() - l.First() + 1; n > uint64(limits.Events) || (n > 1 && bytes > limits.Bytes) || bytes != l.bytes {
			t.Fatalf("%d events, %d bytes (counted %d) exceed %+v", n, bytes, l.bytes, limits)
		}
	})
}
