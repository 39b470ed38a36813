package report

import (
	"fmt"

	"github.com/mcpbridge/bridge/bench/load"
)

// Bounds of a machine that is quiet enough for the ratios to mean something.
const (
	maxWidth   = 0.20 // spread of the direct server's calls per second
	maxForeign = 0.05 // share of the machine that other processes used
)

// Noise says whether the machine was quiet. The direct server is the witness:
// it is the same program under the same load in every round, so whatever makes
// its figure move moves the others too.
type Noise struct {
	Quiet   bool    `json:"quiet"`
	Width   float64 `json:"directSpread"` // worst over the kinds of traffic
	Foreign float64 `json:"foreign"`      // worst median over the kinds
}

// NoiseOf judges the samples.
func NoiseOf(samples []Sample) Noise {
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
	n.Quiet = n.Width <= maxWidth && n.Foreign <= maxForeign
	return n
}

func (n Noise) String() string {
	text := fmt.Sprintf("direct server spread %.0f %% (bound %.0f %%), other processes used %.1f %% of the machine (bound %.0f %%)",
		100*n.Width, 100*maxWidth, 100*n.Foreign, 100*maxForeign)
	if n.Quiet {
		return "quiet machine: " + text
	}
	return "NOISY MACHINE, the ratios below are not to be trusted: " + text
}
