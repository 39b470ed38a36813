package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/bench/load"
)

func TestSpread(t *testing.T) {
	if s := SpreadOf([]float64{3, 1, 2}); s != (Spread{1, 2, 3}) || s.Width() != 1 {
		t.Errorf("%+v", s)
	}
	if s := SpreadOf([]float64{1, 2, 4, 3}); s.Median != 2.5 {
		t.Errorf("%+v", s)
	}
	if s := SpreadOf(nil); s.Width() != 0 {
		t.Errorf("%+v", s)
	}
}

func TestTargetsAreJudgedFromTheirSide(t *testing.T) {
	atLeast, atMost := Target{1.25, 1.35, true}, Target{0.75, 0.62, false}
	for _, c := range []struct {
		t    Target
		v    float64
		want Verdict
	}{
		{atLeast, 1.4, MeetsAim}, {atLeast, 1.3, MeetsMust}, {atLeast, 1.2, Missed}, {atLeast, 0, Unknown},
		{atMost, 0.6, MeetsAim}, {atMost, 0.7, MeetsMust}, {atMost, 0.8, Missed}, {Target{}, 1, Unknown},
	} {
		if got := c.t.Judge(c.v); got != c.want {
			t.Errorf("%+v of %v: %s, want %s", c.t, c.v, got, c.want)
		}
	}
}

// sample makes one plain sample.
func sample(system string, round int, perSecond float64, cpu time.Duration, foreign float64) Sample {
	return Sample{System: system, Kind: load.Plain, Round: round, PerSecond: perSecond, CPUPerCall: cpu, Foreign: foreign}
}

// TestRatiosPairTheRounds: a slow round slows both, so the ratio stays.
func TestRatiosPairTheRounds(t *testing.T) {
	rows := Summarise([]Sample{
		sample(Proxy, 0, 1000, 40*time.Microsecond, 0), sample(Bridge, 0, 1300, 26*time.Microsecond, 0),
		sample(Proxy, 1, 500, 80*time.Microsecond, 0), sample(Bridge, 1, 650, 52*time.Microsecond, 0),
	})
	if len(rows) != 1 || rows[0].Calls != (Spread{1.3, 1.3, 1.3}) || rows[0].CPURatio.Median != 0.65 {
		t.Fatalf("%+v", rows)
	}
	if rows[0].CallsStand != MeetsMust || rows[0].CPUStand != MeetsMust {
		t.Errorf("%s, %s", rows[0].CallsStand, rows[0].CPUStand)
	}
}

func TestNoiseIsToldHonestly(t *testing.T) {
	if n := NoiseOf(nil, nil); n.Known || n.Quiet {
		t.Errorf("nothing measured: %s", n)
	}
	quiet := []Sample{sample(Direct, 0, 1000, 1, 0.01), sample(Direct, 1, 1050, 1, 0.02)}
	if n := NoiseOf(quiet, nil); !n.Quiet || !strings.HasPrefix(n.String(), "quiet") {
		t.Error(n)
	}
	for name, samples := range map[string][]Sample{
		"unsteady": {sample(Direct, 0, 1000, 1, 0), sample(Direct, 1, 1500, 1, 0)},
		"shared":   {sample(Direct, 0, 1000, 1, 0.3), sample(Direct, 1, 1000, 1, 0.3)},
	} {
		if n := NoiseOf(samples, nil); n.Quiet || !strings.HasPrefix(n.String(), "NOISY") {
			t.Errorf("%s: %s", name, n)
		}
	}
	rates := []RateSample{{System: Direct, P50: time.Millisecond}, {System: Direct, P50: 2 * time.Millisecond}}
	if n := NoiseOf(nil, rates); n.Quiet {
		t.Error(n)
	}
}

func TestReportPrints(t *testing.T) {
	r := Report{Rows: Summarise([]Sample{sample(Proxy, 0, 1000, time.Microsecond, 0), sample(Bridge, 0, 900, time.Microsecond, 0)}),
		Figures: []Figure{NewFigure("memory per session", "KiB", map[string]float64{Bridge: 2.5}, 2.5, Target{Must: 3, Aim: 1.5})},
		Errors:  []string{"one thing"}}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"plain", "MISSED", "memory per session", "FAILED: one thing"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}

func TestPlotsAreWellFormed(t *testing.T) {
	for name, p := range map[string]Plot{
		"two lines": {Title: "a < b & c", Series: []Series{{"x", []float64{1, 10, 20_000}, []float64{10, 11, 12.5}}, {"y", []float64{1, 10, 20_000}, []float64{40, 41, 39}}}},
		"one value": {Series: []Series{{"x", []float64{5}, []float64{0}}}},
		"nothing":   {},
	} {
		var b bytes.Buffer
		if err := p.SVG(&b); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
			t.Errorf("%s: no finite picture:\n%s", name, b.String())
		}
		d := xml.NewDecoder(&b)
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}

func TestOtherBridgesAreComparedWithTheBridgeOfTheirRound(t *testing.T) {
	samples := []Sample{
		{System: Bridge, Kind: load.Plain, CPUPerCall: 10 * time.Microsecond, PerSecond: 10}, {System: "other", Kind: load.Plain, CPUPerCall: 15 * time.Microsecond, PerSecond: 5},
		{System: Bridge, Kind: load.Plain, CPUPerCall: 20 * time.Microsecond, PerSecond: 5}, {System: "other", Kind: load.Plain, CPUPerCall: 40 * time.Microsecond, PerSecond: 5},
	}
	got := CompareBeside(samples, []string{"other", "nobody"})
	if len(got) != 1 || got[0].System != "other" || got[0].Ratio != (Spread{1.5, 1.75, 2}) || got[0].Calls != (Spread{0.5, 0.75, 1}) {
		t.Errorf("%+v", got)
	}
}
