package sessions

import (
	"fmt"
	"testing"
	"time"
)

type sink struct{ n int }

func (c *sink) Write(_, _ uint64, data []byte) { c.n += len(data) }
func (c *sink) Flush(bool) error               { return nil }
func (c *sink) Ping() error                    { return nil }
func (c *sink) Drain() error                   { return nil }
func (c *sink) End(error)                      {}

func BenchmarkLogAppend(b *testing.B) {
	var l Log
	event := make([]byte, 200)
	b.ReportAllocs()
	for b.Loop() {
		l.Append(event)
		l.Bound(l.Last())
	}
}

func BenchmarkStreamAppend(b *testing.B) {
	event := make([]byte, 200)
	for name, s := range map[string]*Stream{"logged": NewStream(1, Limits{}), "volatile": NewVolatileStream(Limits{})} {
		b.Run(name, func(b *testing.B) {
			s.Attach(new(sink), 0)
			b.ReportAllocs()
			for b.Loop() {
				s.Append(event)
			}
		})
	}
}

func BenchmarkStreamAttach(b *testing.B) {
	s := NewStream(1, Limits{})
	for range 10 {
		s.Append(make([]byte, 200))
	}
	c := new(sink)
	b.ReportAllocs()
	for b.Loop() {
		s.Attach(c, 0)
		s.Flush()
	}
}

func BenchmarkSessionLookup(b *testing.B) {
	for _, n := range []int{1, 1000, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tab := NewTable(TableOptions[int]{Capacity: n, Idle: time.Hour})
			ids := make([]string, n)
			for i := range ids {
				ids[i] = NewID()
				tab.Add("", ids[i], i)
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					if _, ok := tab.Get(ids[i%n]); !ok {
						b.Fatal("lost")
					}
				}
			})
		})
	}
}

// fullLog returns a log in which each event takes the place of another one.
func fullLog() *Log {
	l := new(Log)
	for range 2 * DefaultEvents {
		l.add("event")
	}
	return l
}

// TestAllocationBudget: events are kept, not copied, so only the lists of them
// take memory. A volatile stream's is given back whenever all is delivered.
func TestAllocationBudget(t *testing.T) {
	log, event := fullLog(), ev("event")
	logged, volatile, lone := NewStream(1, Limits{}), NewVolatileStream(Limits{}), NewVolatileStream(Limits{})
	logged.Attach(new(sink), 0)
	volatile.Attach(new(sink), 0)
	c := new(sink)
	table := NewTable(TableOptions[int]{Capacity: 1000, Idle: time.Hour, Busy: func(int) bool { return false }})
	ids := make([]string, 1000)
	for i := range ids {
		ids[i] = NewID()
		table.Add("", ids[i], i)
	}
	for name, tt := range map[string]struct {
		max float64
		f   func()
	}{
		"ten times what a log holds": {8, func() {
			for range 10 * DefaultEvents {
				log.Append(event)
				log.Bound(log.Last())
			}
		}},
		"first event of a log":                       {1, func() { new(Log).Append(event) }},
		"event that a client gets and may ask again": {0, func() { logged.Append(event) }},
		"event that a client gets":                   {1, func() { volatile.Append(event) }},
		"event for nobody":                           {0, func() { lone.Append(event) }},
		"another connection of a stream":             {1, func() { logged.Attach(c, logged.log.Last()) }},
		"look up a thousand sessions": {0, func() {
			for _, id := range ids {
				_, _ = table.Get(id)
			}
		}},
		"look up no session": {0, func() { _, _ = table.Get("none") }},
	} {
		if got := testing.AllocsPerRun(100, tt.f); got > tt.max {
			t.Errorf("%s: %v allocations, budget %v", name, got, tt.max)
		}
	}
}
