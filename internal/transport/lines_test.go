package transport

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestLines_E31(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	for name, tc := range map[string]struct {
		in   string
		max  int
		want []string
	}{
		"plain":            {"{}\n[]\n", 100, []string{"{}", "[]"}},
		"CRLF":             {"{}\r\n[]\r\n", 100, []string{"{}", "[]"}},
		"blank lines":      {"\n \r\n{}\n\n\t\n", 100, []string{"{}"}},
		"no newline last":  {"{}\n[]", 100, []string{"{}", "[]"}},
		"empty":            {"", 100, nil},
		"too long":         {"0123456789abc\n{}\n", 10, []string{"large:0123456789", "{}"}},
		"just right":       {"0123456789\r\n{}\n", 10, []string{"0123456789", "{}"}},
		"long":             {long + "\n{}\n", 1 << 20, []string{long, "{}"}},
		"long and too big": {long + "\n{}\n", 100_000, []string{"large:" + long[:100_000], "{}"}},
		"too big at end":   {long, 10, []string{"large:" + long[:10]}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tc.in), iotest.HalfReader(strings.NewReader(tc.in))} {
				l := NewLineReader(r, tc.max)
				var got []string
				for {
					line, err := l.Read()
					if err == io.EOF {
						break
					}
					if errors.Is(err, ErrTooLarge) {
						line = append([]byte("large:"), line...)
					}
					got = append(got, string(line))
				}
				if strings.Join(got, "|") != strings.Join(tc.want, "|") {
					t.Errorf("got %.200q", got)
				}
			}
		})
	}
}

func TestTheEndOfALineAboveTheLimitIsKept(t *testing.T) {
	for _, line := range []string{"0123456789abc", strings.Repeat("0123456789", 20_000) + "x", strings.Repeat("y", 65536) + "abc"} {
		l := NewLineReader(strings.NewReader("an earlier line above the limit\n"+line+"\r\n{}\n"), 10)
		_, _ = l.Read()
		_, err := l.Read()
		want := line[max(0, len(line)-tailSize+2):]
		if got := string(l.Tail()); !errors.Is(err, ErrTooLarge) || !strings.HasSuffix(got, want) || len(got) > tailSize || !strings.HasSuffix(line, got) {
			t.Errorf("the end of %.20q…: %q, %v", line, got, err)
		}
		if next, err := l.Read(); string(next) != "{}" || err != nil {
			t.Errorf("after it: %q, %v", next, err)
		}
	}
}

func TestLinesHaveMemoryOfTheirOwn(t *testing.T) {
	l := NewLineReader(strings.NewReader("aaaa\nbbbb\n"), 10)
	a, _ := l.Read()
	_, _ = l.Read()
	if string(a) != "aaaa" {
		t.Errorf("the first line became %q", a)
	}
}

func TestAppendLineNeverBreaksAMessage_E31(t *testing.T) {
	got := AppendLine(nil, []byte("{\r\n\"a\":\n1}"))
	if string(got) != "{  \"a\": 1}\n" {
		t.Errorf("got %q", got)
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("{}\r\n\n[]"), 3)
	f.Fuzz(func(t *testing.T, in []byte, limit int) {
		if limit <= 0 || limit > 1<<16 {
			return
		}
		l := NewLineReader(bytes.NewReader(in), limit)
		for {
			line, err := l.Read()
			if err != nil && !errors.Is(err, ErrTooLarge) {
				return
			}
			if len(line) > limit || bytes.IndexByte(line, '\n') >= 0 {
				t.Fatalf("line %q for limit %d", line, limit)
			}
		}
	})
}
