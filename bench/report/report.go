package report

import (
	"time"

	"github.com/mcpbridge/bridge/bench/load"
)

// Systems that are compared, in this order.
const (
	Direct = "direct"       // the legacy server itself
	Proxy  = "ReverseProxy" // the legacy server behind httputil.ReverseProxy
	Bridge = "bridge"       // the modern server behind the bridge
)

// Sample is one closed-loop window of one system.
type Sample struct {
	System     string        `json:"system"`
	Kind       load.Kind     `json:"kind"`
	Round      int           `json:"round"`
	PerSecond  float64       `json:"perSecond"`
	CPUPerCall time.Duration `json:"cpuPerCallNs"` // of the process under test
	P50        time.Duration `json:"p50Ns"`
	P99        time.Duration `json:"p99Ns"`
	Errors     int64         `json:"errors"`
	FirstError string        `json:"firstError,omitempty"`
	Foreign    float64       `json:"foreign"` // share of the machine that others used, 0..1
}

// RateSample is one fixed-rate window of one system.
type RateSample struct {
	System  string        `json:"system"`
	Round   int           `json:"round"`
	P50     time.Duration `json:"p50Ns"`
	P99     time.Duration `json:"p99Ns"`
	Calls   int64         `json:"calls"`
	Errors  int64         `json:"errors"`
	Foreign float64       `json:"foreign"`
}

// Row is one line of the closed-loop table.
type Row struct {
	Kind       load.Kind          `json:"kind"`
	PerSecond  map[string]Spread  `json:"perSecond"`
	CPU        map[string]Spread  `json:"cpuPerCallMicroseconds"`
	P50        map[string]float64 `json:"p50Microseconds"`
	Errors     map[string]int64   `json:"errors"`
	Calls      Spread             `json:"callsRatio"` // bridge ÷ ReverseProxy
	CPURatio   Spread             `json:"cpuRatio"`
	CallsGoal  Target             `json:"callsTarget"`
	CPUGoal    Target             `json:"cpuTarget"`
	CallsStand Verdict            `json:"callsVerdict"`
	CPUStand   Verdict            `json:"cpuVerdict"`
}

// Figure is one line of the table of figures beside the closed loop.
type Figure struct {
	Name   string             `json:"name"`
	Unit   string             `json:"unit"`
	Values map[string]float64 `json:"values"` // by system, absolute
	Value  float64            `json:"value"`  // what the target is about
	Goal   Target             `json:"target"`
	Stand  Verdict            `json:"verdict"`
	Note   string             `json:"note,omitempty"`
}

// Report is everything that one run of the comparison found.
type Report struct {
	Go      string       `json:"go"`
	CPUs    int          `json:"cpus"`
	When    time.Time    `json:"when"`
	Noise   Noise        `json:"noise"`
	Rows    []Row        `json:"rows"`
	Beside  []Beside     `json:"beside,omitempty"`
	Figures []Figure     `json:"figures"`
	Samples []Sample     `json:"samples"`
	Rates   []RateSample `json:"rateSamples"`
	Plots   []Plot       `json:"plots,omitempty"`
	// Errors lists what went wrong with the bridge or the direct server; the
	// run fails when it is not empty. ReverseProxy's own failures are in Rows.
	Errors []string `json:"errors"`
}

// callsGoals and cpuGoals are the targets relative to ReverseProxy.
var callsGoals = map[load.Kind]Target{
	load.Plain:    {1.25, 1.35, true},
	load.Question: {1.1, 1.25, true},
	load.Rounds:   {1.0, 1.1, true},
	load.Progress: {1.1, 1.25, true},
	load.Big:      {1.05, 1.15, true},
	load.Whole:    {1.5, 2.0, true},
}

var cpuGoals = map[load.Kind]Target{
	load.Plain:    {0.75, 0.62, false},
	load.Question: {0.80, 0.64, false},
	load.Rounds:   {0.80, 0.68, false},
	load.Progress: {0.80, 0.68, false},
	load.Big:      {0.85, 0.75, false},
	load.Whole:    {0.60, 0.45, false},
}

// Summarise makes the closed-loop table of the samples.
func Summarise(samples []Sample) []Row {
	var rows []Row
	for _, kind := range load.Kinds {
		r := Row{Kind: kind, PerSecond: map[string]Spread{}, CPU: map[string]Spread{}, P50: map[string]float64{}, Errors: map[string]int64{}, CallsGoal: callsGoals[kind], CPUGoal: cpuGoals[kind]}
		rate, cpu := map[string][]float64{}, map[string][]float64{}
		for _, s := range samples {
			if s.Kind != kind {
				continue
			}
			rate[s.System] = append(rate[s.System], s.PerSecond)
			cpu[s.System] = append(cpu[s.System], micros(s.CPUPerCall))
			r.Errors[s.System] += s.Errors
			r.P50[s.System] = micros(s.P50)
		}
		if len(rate) == 0 {
			continue
		}
		for system := range rate {
			r.PerSecond[system], r.CPU[system] = SpreadOf(rate[system]), SpreadOf(cpu[system])
		}
		r.Calls = SpreadOf(Divide(rate[Bridge], rate[Proxy]))
		r.CPURatio = SpreadOf(Divide(cpu[Bridge], cpu[Proxy]))
		r.CallsStand, r.CPUStand = r.CallsGoal.Judge(r.Calls.Median), r.CPUGoal.Judge(r.CPURatio.Median)
		rows = append(rows, r)
	}
	return rows
}

// Beside is how another bridge stood to the bridge under one kind of traffic.
type Beside struct {
	System string    `json:"system"`
	Kind   load.Kind `json:"kind"`
	CPU    Spread    `json:"cpuPerCallMicroseconds"`
	Ratio  Spread    `json:"cpuRatio"`   // it ÷ the bridge, per round
	Calls  Spread    `json:"callsRatio"` // the same of calls per second
}

// CompareBeside makes the table of other bridges.
func CompareBeside(samples []Sample, systems []string) (all []Beside) {
	for _, kind := range load.Kinds {
		rate, cpu := map[string][]float64{}, map[string][]float64{}
		for _, s := range samples {
			if s.Kind == kind {
				rate[s.System] = append(rate[s.System], s.PerSecond)
				cpu[s.System] = append(cpu[s.System], micros(s.CPUPerCall))
			}
		}
		for _, system := range systems {
			if len(cpu[system]) > 0 {
				all = append(all, Beside{system, kind, SpreadOf(cpu[system]), SpreadOf(Divide(cpu[system], cpu[Bridge])), SpreadOf(Divide(rate[system], rate[Bridge]))})
			}
		}
	}
	return all
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// NewFigure judges a figure.
func NewFigure(name, unit string, values map[string]float64, value float64, goal Target) Figure {
	return Figure{Name: name, Unit: unit, Values: values, Value: value, Goal: goal, Stand: goal.Judge(value)}
}
