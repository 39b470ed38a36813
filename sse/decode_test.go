package sse

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// read decodes text to the end and renders its events.
func read(t testing.TB, r io.Reader, maxEvent int) ([]string, error) {
	t.Helper()
	var got []string
	d := NewDecoder(r, maxEvent)
	for {
		ev, err := d.Next()
		if err != nil {
			if _, again := d.Next(); !errors.Is(again, err) {
				t.Errorf("error is not final: %v, then %v", err, again)
			}
			return got, err
		}
		s := fmt.Sprintf("%s|%s|%q", ev.Type, ev.ID, ev.Data)
		if !ev.HasData {
			s = ev.Type + "|" + ev.ID + "|none"
		}
		if ev.Retry >= 0 {
			s += "|" + ev.Retry.String()
		}
		got = append(got, s)
	}
}

var streams = []struct {
	name string
	text string
	want []string
}{
	{"empty stream", "", nil},
	{"one message", "data: {}\n\n", []string{`message||"{}"`}},
	{"no space after the colon", "data:{}\n\n", []string{`message||"{}"`}},
	{"only one space is taken", "data:  x\n\n", []string{`message||" x"`}},
	{"field without colon", "data\n\n", []string{`message||""`}},
	{"E-36 data lines are joined", "data: a\ndata: b\ndata:\n\n", []string{`message||"a\nb\n"`}},
	{"data around other fields", "data: a\nid: 7\n: c\ndata: b\n\n", []string{`message|7|"a\nb"`}},
	{"E-36 empty data differs from none", "data\n\nid: 1\n\n", []string{`message||""`, `message|1|none`}},
	{"E-7 priming event", "id: s-0\ndata: \n\n", []string{`message|s-0|""`}},
	{"E-36 any event name", "event: foo\ndata: x\n\ndata: y\n\n", []string{`foo||"x"`, `message||"y"`}},
	{"event without data", "event: endpoint\n\n", []string{`endpoint||none`}},
	{"E-36 comments are ignored", ": hi\n\n:\n\ndata: x\n: y\n\n", []string{`message||"x"`}},
	{"unknown fields are ignored", "foo: 1\nDATA: 2\ndata : 3\n\n", nil},
	{"id persists", "id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", []string{`message|1|"a"`, `message|1|"b"`, `message||"c"`}},
	{"id with NUL is ignored", "id: 1\nid: a\x00b\ndata: a\n\n", []string{`message|1|"a"`}},
	{"retry", "retry: 1500\n\nretry: 1x\ndata: a\n\nretry: 99999999999999999999\n\n",
		[]string{`message||none|1.5s`, `message||"a"`, `message||none|24h0m0s`}},
	{"CRLF", "id: 1\r\ndata: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", []string{`message|1|"a\nb"`, `message|1|"c"`}},
	{"CR", "data: a\rdata: b\r\rdata: c\r\r", []string{`message||"a\nb"`, `message||"c"`}},
	{"mixed line ends", "data: a\r\ndata: b\n\r\ndata: c\r\n\rdata: d\n\r", []string{`message||"a\nb"`, `message||"c"`, `message||"d"`}},
	{"many blank lines", "\n\r\n\r\r\n\n\ndata: a\n\n\n\n", []string{`message||"a"`}},
	{"byte order mark", "\xEF\xBB\xBFdata: a\n\n", []string{`message||"a"`}},
	{"only the first mark is taken", "\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\ndata: b\n\n", []string{`message||"b"`}},
	{"part of a mark", "\xEF\xBB", nil},
	{"incomplete event is dropped", "data: a\n\ndata: b\n", []string{`message||"a"`}},
	{"incomplete line is dropped", "data: a\n\ndata: b", []string{`message||"a"`}},
}

func TestDecode(t *testing.T) {
	readers := map[string]func(string) io.Reader{
		"whole":     func(s string) io.Reader { return strings.NewReader(s) },
		"bytes":     func(s string) io.Reader { return iotest.OneByteReader(strings.NewReader(s)) },
		"halves":    func(s string) io.Reader { return iotest.HalfReader(strings.NewReader(s)) },
		"early EOF": func(s string) io.Reader { return iotest.DataErrReader(strings.NewReader(s)) },
	}
	for _, tt := range streams {
		for name, reader := range readers {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				got, err := read(t, reader(tt.text), 0)
				if err != io.EOF {
					t.Errorf("error %v, want io.EOF", err)
				}
				if !slices.Equal(got, tt.want) {
					t.Errorf("got  %q\nwant %q", got, tt.want)
				}
			})
		}
	}
}

func TestEventBeyondBoundFails(t *testing.T) {
	fits := "id: 1\ndata: " + strings.Repeat("x", 87) // 99 bytes and the line's end
	tests := []struct {
		name, text string
		events     int
		want       error
	}{
		{"exactly the bound", fits + "\n\n" + fits + "\n\n", 2, io.EOF},
		{"exactly the bound, CRLF", strings.ReplaceAll(fits[:98], "\n", "\r\n") + "\r\n\r\n", 1, io.EOF},
		{"one byte more", fits + "x\n\n", 0, ErrTooLarge},
		{"after a good event", "data: a\n\n" + fits + "x\n\ndata: b\n\n", 1, ErrTooLarge},
		{"endless line", strings.Repeat("x", 10000), 0, ErrTooLarge},
		{"endless line of data", "data: " + strings.Repeat("x", 10000), 0, ErrTooLarge},
		{"endless data lines", strings.Repeat("data:\n", 10000), 0, ErrTooLarge},
		{"endless ids", strings.Repeat("id: 1\n", 10000), 0, ErrTooLarge},
		{"many comments before", strings.Repeat(": ping\n", 1000) + fits + "\n\n", 1, io.EOF},
		{"many blank lines before", strings.Repeat("\r\n", 1000) + fits + "\n\n", 1, io.EOF},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tt.text), iotest.OneByteReader(strings.NewReader(tt.text))} {
				got, err := read(t, r, 100)
				if !errors.Is(err, tt.want) || len(got) != tt.events {
					t.Errorf("%d events, error %v; want %d, %v", len(got), err, tt.events, tt.want)
				}
			}
		})
	}
}

func TestReadErrorComesAfterTheEventsBeforeIt(t *testing.T) {
	broken := errors.New("connection reset")
	r := io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(broken))
	got, err := read(t, r, 0)
	if len(got) != 1 || !errors.Is(err, broken) {
		t.Errorf("%d events, error %v", len(got), err)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestReaderWithoutProgressFails(t *testing.T) {
	if _, err := read(t, stuck{}, 0); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("error %v", err)
	}
}

func TestReadyTellsWhetherNextWouldRead(t *testing.T) {
	for rest, want := range map[string]bool{
		"":                           false,
		"data: b\n\n":                true,
		"data: b\r\n\r":              true,
		": ping\n\n: ping\n\n":       false,
		": ping\n\ndata\n\ndata: c":  true,
		"data: b\ndata: c\n":         false,
		"data: b\ndata: c\n\ndata: ": true,
		"id: 7\n\n":                  true, // an event, although no message
	} {
		d := NewDecoder(strings.NewReader("data: a\ndata: a\n\n"+rest), 0)
		if d.Ready() {
			t.Errorf("%q: ready before anything was read", rest)
		}
		ev, err := d.Next()
		if got := d.Ready(); got != want || d.Ready() != got || err != nil || string(ev.Data) != "a\na" {
			t.Errorf("%q: ready %v, want %v; %q, %v", rest, got, want, ev.Data, err)
		}
	}
}

func TestResetForgetsTheStreamBefore(t *testing.T) {
	d := NewDecoder(strings.NewReader("id: 1\nevent: x\ndata: a\n\ndata: b\r"), 0)
	if _, err := d.Next(); err != nil {
		t.Fatal(err)
	}
	d.Reset(strings.NewReader("\xEF\xBB\xBF\ndata: c\n\n"), 0)
	ev, err := d.Next()
	if err != nil || ev.ID != "" || ev.Type != "message" || string(ev.Data) != "c" {
		t.Errorf("%+v, %v", ev, err)
	}
}

func TestEncodedEventsDecode(t *testing.T) {
	var b []byte
	b = AppendEvent(b, "", []byte(`{"a":1}`))
	b = AppendPriming(b, "s-0")
	b = AppendComment(b, "keep\nalive\r\nnow")
	b = AppendRetry(b, 1500*time.Millisecond)
	b = AppendEvent(b, "s-1", []byte("a\nb\r\nc\rd"))
	b = AppendEvent(b, "bad\nid", nil)
	b = AppendEvent(b, "s-2", []byte("\r\n"))
	want := []string{`message||"{\"a\":1}"`, `message|s-0|""`, `message|s-0|none|1.5s`,
		`message|s-1|"a\nb\nc\nd"`, `message|s-1|""`, `message|s-2|"\n"`}
	got, err := read(t, strings.NewReader(string(b)), 0)
	if err != io.EOF || !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q\n%s", got, want, b)
	}
}

func TestEventWireFormat(t *testing.T) {
	got := string(AppendEvent([]byte("x"), "s-1", []byte("{}")))
	if want := "xevent: message\nid: s-1\ndata: {}\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// silence is a stream that says something and then nothing more; it notes what its decoder holds
// whenever it is asked for more.
type silence struct {
	io.Reader
	of   *Decoder
	held []int
}

func (s *silence) Read(p []byte) (int, error) {
	s.held = append(s.held, s.of.Held())
	return s.Reader.Read(p)
}

// What a long event has taken is given back before the decoder waits for what follows, also
// where that has begun.
func TestALongEventLeavesNoLargeBuffer(t *testing.T) {
	for name, text := range map[string]string{
		"nothing follows":    "data: " + strings.Repeat("x", 1<<20) + "\n\n",
		"the next has begun": "data: " + strings.Repeat("x", 1<<20) + "\n\ndata: y",
	} {
		s := &silence{Reader: strings.NewReader(text)}
		s.of = NewDecoder(s, 2<<20)
		if ev, err := s.of.Next(); err != nil || len(ev.Data) != 1<<20 {
			t.Fatalf("%s: %d bytes, %v", name, len(ev.Data), err)
		}
		if most := slices.Max(s.held); most < 1<<20 || most > 2<<20 {
			t.Errorf("%s: while it came, %d bytes were held", name, most)
		}
		s.held = nil
		if _, err := s.of.Next(); err != io.EOF || s.held[0] != 0 || cap(s.of.in.buf) > keepBuffer {
			t.Errorf("%s: behind it, %d bytes are held in a buffer of %d, %v", name, s.held, cap(s.of.in.buf), err)
		}
	}
}

// An id lasts as long as its stream.
func TestALongIDIsHeld(t *testing.T) {
	d := NewDecoder(strings.NewReader("id: "+strings.Repeat("i", 1<<20)+"\ndata: x\n\ndata: y\n\n"), 2<<20)
	for range 2 {
		if _, err := d.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Next(); err != io.EOF || d.Held() < 1<<20 {
		t.Errorf("%d bytes are held, %v", d.Held(), err)
	}
}
