// Package report turns samples into what a reader needs: ratios with their
// spread against the targets, a verdict on the machine's noise, tables, JSON
// and plots. It measures nothing.
package report

import (
	"fmt"
	"slices"
)

// Spread is the smallest, middle and largest of some values.
type Spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// SpreadOf summarises values; no values give zeros.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	v := slices.Sorted(slices.Values(values))
	mid := v[len(v)/2]
	if len(v)%2 == 0 {
		mid = (mid + v[len(v)/2-1]) / 2
	}
	return Spread{Min: v[0], Median: mid, Max: v[len(v)-1]}
}

// Width is how far the values lie apart, relative to the middle one.
func (s Spread) Width() float64 {
	if s.Median == 0 {
		return 0
	}
	return (s.Max - s.Min) / s.Median
}

func (s Spread) String() string { return fmt.Sprintf("%.2f %.2f %.2f", s.Min, s.Median, s.Max) }

// Divide pairs two series by position, so that a disturbance that lasted a
// whole round does not count as a difference.
func Divide(a, b []float64) []float64 {
	out := make([]float64, 0, len(a))
	for i := range min(len(a), len(b)) {
		if b[i] != 0 {
			out = append(out, a[i]/b[i])
		}
	}
	return out
}

// Target is a bound that a figure must keep, and one it should.
type Target struct {
	Must    float64 `json:"must"`
	Aim     float64 `json:"aim"`
	AtLeast bool    `json:"atLeast"` // bounds are lower bounds
}

// Verdict is how a figure stands against its target.
type Verdict string

// Verdicts, best first. Unknown is a figure that was not measured.
const (
	MeetsAim  Verdict = "aim"
	MeetsMust Verdict = "must"
	Missed    Verdict = "MISSED"
	Unknown   Verdict = "-"
)

// Judge compares a figure with its target.
func (t Target) Judge(v float64) Verdict {
	keeps := func(bound float64) bool {
		if t.AtLeast {
			return v >= bound
		}
		return v <= bound
	}
	switch {
	case v == 0 || t == Target{}:
		return Unknown
	case keeps(t.Aim):
		return MeetsAim
	case keeps(t.Must):
		return MeetsMust
	}
	return Missed
}
