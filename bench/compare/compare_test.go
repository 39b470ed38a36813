package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/bench/load"
	"github.com/mcpbridge/bridge/bench/report"
)

func TestFlags(t *testing.T) {
	o, err := parse([]string{"-modes", "hold,closed", "-kinds", "big,plain", "-n", "7", "--", "--limits.flows=9"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.modes, []string{"hold", "closed"}) || !slices.Equal(o.kinds, []load.Kind{load.Big, load.Plain}) || o.n != 7 || !slices.Equal(o.flags, []string{"--limits.flows=9"}) {
		t.Errorf("%+v", o)
	}
	if o, err = parse([]string{"-tls", "both", "-beside", "a=--http standard", "-beside", "b@/old="}); err != nil || o.tls != (hops{true, true}) || len(o.beside) != 2 ||
		o.beside[0].name != "a" || len(o.beside[0].flags) != 2 || o.beside[1].name != "b" || o.beside[1].program != "/old" || len(o.beside[1].flags) != 0 {
		t.Errorf("%+v, %v", o, err)
	}
	for _, bad := range [][]string{{"-modes", "x"}, {"-kinds", "x"}, {"-tls", "x"}, {"-beside", "x"}} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
	if o, err = parse([]string{"-smoke"}); err != nil || !slices.Equal(o.modes, modes) || o.rounds != 1 {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestForeign: what the machine used beyond the run's own processes, and what
// its host took away, count as foreign.
func TestForeign(t *testing.T) {
	start := time.Now()
	u := &usage{
		pids: []int{1, 2}, n: 2,
		cpu:    [2][]time.Duration{{0, 0}, {600 * time.Millisecond, 400 * time.Millisecond}},
		busy:   [2]time.Duration{0, 1300 * time.Millisecond},
		stolen: [2]time.Duration{0, 100 * time.Millisecond},
		at:     [2]time.Time{start, start.Add(time.Second)},
	}
	if got := u.foreign(2); got < 0.199 || got > 0.201 {
		t.Errorf("foreign %v, want 0.2", got)
	}
	if got := u.underTest(); got != 600*time.Millisecond {
		t.Errorf("under test %v", got)
	}
	if unfinished := (&usage{n: 1}); unfinished.foreign(2) != 0 || unfinished.underTest() != 0 {
		t.Error("a run that was cut short has no usage")
	}
}

func TestErrorsOfTheBridgeFailTheRun(t *testing.T) {
	for _, format := range []struct{ json, smoke bool }{{}, {json: true}, {smoke: true}} {
		c := &comparison{options: &options{json: format.json, smoke: format.smoke}, ctx: t.Context(), report: &report.Report{}}
		var out bytes.Buffer
		if err := c.finish(&out); err != nil {
			t.Errorf("%+v: %v", format, err)
		}
		if format.json && !json.Valid(out.Bytes()) {
			t.Errorf("no JSON: %s", out.String())
		}
		var errs load.Errors
		errs.Add(errors.New("lost"))
		c.fail("bridge, plain", &errs)
		if err := c.finish(&out); err == nil || !strings.Contains(err.Error(), "lost") {
			t.Errorf("%+v: %v", format, err)
		}
	}
}

func TestRolesAnswer(t *testing.T) {
	for _, role := range []string{roleModern, roleLegacy, roleProxy} {
		h, err := roleHandler(role, "http://127.0.0.1:1", 5)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "/control/stats", nil))
		if want := map[bool]int{true: 502, false: 200}[role == roleProxy]; w.Code != want {
			t.Errorf("%s: %d, want %d", role, w.Code, want)
		}
	}
	if _, err := roleHandler("x", "", 5); err == nil {
		t.Error("an unknown role is accepted")
	}
}
