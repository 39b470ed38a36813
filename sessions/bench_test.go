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
				tab.Add(ids[i], i)
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
