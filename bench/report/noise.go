package report

import (
	"fmt"

	"github.com/mcpbridge/bridge/bench/load"
)

// Bounds of a machine that is quiet enough for the ratios to mean something.
const (
	maxWidth   = 0.20 // spread of the direct server's calls per second
	maxForeign = 0.05 // share of the machine that other processes used
	maxRate    = 0.50 // spread of the direct server's p50 at a fixed rate
)

// Noise says whether the machine was quiet. The direct server is the witness:
// it is the same program under the same load in every round, so whatever makes
// its figure move moves the others too.
type Noise struct {
	Known   bool    `json:"known"` // false: nothing was measured that tells
	Quiet   bool    `json:"quiet"`
	Width   float64 `json:"directSpread"`     // worst over the kinds of traffic
	Rate    float64 `json:"directRateSpread"` // of the p50 at the fixed rate
	Foreign float64 `json:"foreign"`          // worst median over the kinds
}

// NoiseOf judges the samples of the closed loop and of the fixed rate.
func NoiseOf(samples []Sample, rates []RateSample) Noise {
	var n Noise
	for _, kind := range load.Kinds {
		var rate, foreign []float64
		for _, s := range samples {
			if s.Kind != kind {
				continue
			}
			foreign = append(foreign, s.Foreign)
			if s.System == Direct {
				rate = append(rate, s.PerSecond)
			}
		}
		n.Width = max(n.Width, SpreadOf(rate).Width())
		n.Foreign = max(n.Foreign, SpreadOf(foreign).Median)
	}
	var p50, foreign []float64
	for _, s := range rates {
		foreign = append(foreign, s.Foreign)
		if s.System == Direct {
			p50 = append(p50, micros(s.P50))
		}
	}
	n.Rate = SpreadOf(p50).Width()
	n.Foreign = max(n.Foreign, SpreadOf(foreign).Median)
	n.Known = len(samples)+len(rates) > 0
	n.Quiet = n.Known && n.Width <= maxWidth && n.Foreign <= maxForeign && n.Rate <= maxRate
	return n
}

func (n Noise) String() string {
	if !n.Known {
		return "noise not measured: run the closed or rate mode too"
	}
	text := fmt.Sprintf("direct server spread %.0f %% (bound %.0f %%), its p50 at the fixed rate %.0f %% (bound %.0f %%), other processes used %.1f %% of the machine (bound %.0f %%)",
		100*n.Width, 100*maxWidth, 100*n.Rate, 100*maxRate, 100*n.Foreign, 100*maxForeign)
	if n.Quiet {
		return "quiet machine: " + text
	}
	return "NOISY MACHINE, the ratios below are not to be trusted: " + text
}
