package http1

import (
	"slices"
	"testing"
	"time"
)

func TestFields(t *testing.T) {
	for line, want := range map[string][2]string{
		"A: b":            {"A", "b"},
		"a-b_c:\t x y \t": {"a-b_c", "x y"},
		"A:":              {"A", ""},
		"A: ümlaut":       {"A", "ümlaut"},
		"A : b":           {},
		"A":               {},
		"":                {},
		": b":             {},
		" A: b":           {},
		"A@: b":           {},
		"A: b\x00":        {},
		"A: b\rc":         {},
		"A: \x7f":         {},
	} {
		name, value, ok := CutField(line)
		nameB, valueB, okB := CutField([]byte(line))
		if ok != (want[0] != "") || ok && (name != want[0] || value != want[1]) {
			t.Errorf("%q: %q %q %v", line, name, value, ok)
		}
		if ok != okB || ok && (name != string(nameB) || value != string(valueB)) {
			t.Errorf("%q differs as bytes", line)
		}
	}
}

func TestLines(t *testing.T) {
	rest := []byte("one\r\ntwo\nthree")
	var got []string
	for rest != nil {
		var line []byte
		line, rest = CutLine(rest)
		got = append(got, string(line))
	}
	if !slices.Equal(got, []string{"one", "two", "three"}) {
		t.Errorf("%q", got)
	}
}

func TestListElements(t *testing.T) {
	if got := slices.Collect(Elements(" a,, B ,c d,")); !slices.Equal(got, []string{"a", "B", "c d"}) {
		t.Errorf("%q", got)
	}
	if !HasElement("x, Close", "close") || HasElement("closer", "close") || HasElement("", "close") {
		t.Error("elements are not found")
	}
}

func TestMediaTypes(t *testing.T) {
	for v, want := range map[string]string{
		"Application/JSON ; charset=utf-8": "application/json",
		"text/event-stream":                "text/event-stream",
		"Text/HTML;a=b":                    "text/html",
		"":                                 "",
	} {
		if got := MediaType(v); got != want {
			t.Errorf("%q: %q", v, got)
		}
	}
	v := []byte("application/json; charset=utf-8")
	if n := testing.AllocsPerRun(10, func() { MediaType(v) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestLengths(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "123": 123, "999999999999999999": 999999999999999999,
		"": -1, "+1": -1, "-1": -1, "1 ": -1, "0x1": -1, "9999999999999999999": -1,
	} {
		if n, ok := ParseLength(text); ok != (want >= 0) || ok && n != want {
			t.Errorf("%q: %d %v", text, n, ok)
		}
	}
	for text, want := range map[string]int64{
		"0\r\n": 0, "1f;a=b\r\n": 31, "00F \r\n": 15,
		"": -1, "\r\n": -1, "1\n": -1, "g\r\n": -1, "1\r\r\n": -1, "-1\r\n": -1, "ffffffffffffffff\r\n": -1,
	} {
		if n, ok := ParseChunkSize([]byte(text)); ok != (want >= 0) || ok && n != want {
			t.Errorf("%q: %d %v", text, n, ok)
		}
	}
	if got := string(AppendChunk(nil, []byte("0123456789abcdef!"))); got != "11\r\n0123456789abcdef!\r\n" {
		t.Errorf("%q", got)
	}
}

func TestKeepAlive(t *testing.T) {
	for v, want := range map[string]time.Duration{
		"timeout=5":              5 * time.Second,
		"max=7, Timeout=15":      15 * time.Second,
		"timeout=0":              0,
		"timeout=99999999999999": maxKeepAlive,
		"timeout=":               -1,
		"timeout=x":              -1,
		"max=7":                  -1,
		"":                       -1,
	} {
		if d, ok := KeepAlive(v); ok != (want >= 0) || ok && d != want {
			t.Errorf("%q: %v %v", v, d, ok)
		}
	}
	for timeout, want := range map[time.Duration]time.Duration{
		5 * time.Second: 4 * time.Second, time.Second: time.Second / 2, 0: 0,
	} {
		if got := ReuseFor(timeout); got != want {
			t.Errorf("%v: %v", timeout, got)
		}
	}
}
