package mrtr

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// Whatever servers count, over rounds and with heartbeats between them: what the client is told is JSON,
// of numbers that a double can hold, and rises.
func TestProgressThatCountsOnIsJSONAndRises_C4(t *testing.T) {
	for name, tc := range map[string]struct {
		rounds [2]string
		total  string
	}{
		"small":                 {[2]string{"50", "1"}, "100"},
		"fractions":             {[2]string{"0.1", "0.2"}, "1"},
		"a sum that is too big": {[2]string{"9e307", "9e307"}, "9e307"},
		"the last integer":      {[2]string{"9007199254740991", "1"}, "9007199254740993"},
		"time in microseconds":  {[2]string{"1764370000123456", "1"}, "1764370000999999"},
		"the largest total":     {[2]string{"1", "1"}, "1.7976931348623157e308"},
		"the largest double":    {[2]string{"1.7976931348623157e308", "1.7976931348623157e308"}, "1.7976931348623157e308"},
		"next to nothing":       {[2]string{"1e300", "1"}, "2"},
		"below zero":            {[2]string{"-1e308", "-1"}, "-1.7e308"},
	} {
		t.Run(name, func(t *testing.T) {
			f := sending(t)
			f.Progress.Token = []byte("1")
			last := math.Inf(-1)
			told := func(raw, total []byte) {
				t.Helper()
				var value, of float64
				if err := json.Unmarshal(raw, &value); err != nil || value <= last {
					t.Errorf("after %v the client is told %s: %v", last, raw, err)
				}
				if err := json.Unmarshal(total, &of); err != nil {
					t.Errorf("of %s: %v", total, err)
				}
				last = value
			}
			for i, value := range tc.rounds {
				raw, total, ok := f.Count([]byte(value), []byte(tc.total), Moment{})
				switch {
				case !ok && i == 0:
					t.Fatal("the first is not told")
				case ok && raw == nil:
					told([]byte(value), []byte(tc.total))
				case ok:
					told(raw, total)
				}
				if i > 0 {
					continue
				}
				step(f, outcome(required(form("q"))))
				for range 2 {
					if act := f.Step(Tick(true), Moment{Now: f.Clock.Beat}); act.Say != "" {
						params := string(f.Progress.Params(act.Count, ""))
						told([]byte(strings.TrimSuffix(strings.TrimPrefix(params, `{"progressToken":1,"progress":`), "}")), []byte("0"))
					}
				}
				step(f, Answered("q", []byte(accept)))
			}
		})
	}
}

// A number is written as people and programs expect it, and reads back as the same.
func TestProgressIsWrittenInFull_C4(t *testing.T) {
	for value, want := range map[float64]string{5.001: "5.001", 1000001: "1000001", 9007199254740992: "9007199254740992", 1e300: "1e+300", math.Inf(1): "1.7976931348623157e+308", math.Inf(-1): "-1.7976931348623157e+308"} {
		if got := string(number(value)); got != want {
			t.Errorf("%v is %s, want %s", value, got, want)
		}
	}
}
