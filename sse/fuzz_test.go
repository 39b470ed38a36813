package sse

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// chunks is a reader that hands out its text in pieces of the given sizes, over
// and over.
type chunks struct {
	text  []byte
	sizes []byte
	n     int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.text) == 0 {
		return 0, io.EOF
	}
	n := min(len(p), len(c.text), 1+int(c.sizes[c.n%len(c.sizes)]))
	c.n++
	copy(p, c.text[:n])
	c.text = c.text[n:]
	return n, nil
}

// reference is the algorithm of the standard, word by word and without bounds.
func reference(text string) []string {
	text = strings.TrimPrefix(text, "\xEF\xBB\xBF")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(text, "\n")
	var events []string
	var data, kind, id string
	var known bool
	var retry int64 = -1
	for _, line := range lines[:len(lines)-1] { // the last one has no end
		if line == "" {
			if known {
				events = append(events, rendered(kind, id, data, retry))
			}
			data, kind, known, retry = "", "", false, -1
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case name == "data":
			data += value + "\n"
		case name == "event":
			kind = value
		case name == "id" && !strings.Contains(value, "\x00"):
			id = value
		case name == "retry" && value != "" && strings.Trim(value, "0123456789") == "":
			retry = 0
			for _, c := range value {
				retry = min(retry*10+int64(c-'0'), maxRetry.Milliseconds())
			}
		default:
			continue
		}
		known = true
	}
	return events
}

func rendered(kind, id, data string, retry int64) string {
	if kind == "" {
		kind = "message"
	}
	return fmt.Sprintf("%s|%s|%v|%q|%d", kind, id, data != "", strings.TrimSuffix(data, "\n"), retry)
}

func decoded(t testing.TB, r io.Reader, maxEvent int) ([]string, error) {
	var events []string
	counted := &counter{r: r}
	d := NewDecoder(counted, maxEvent)
	for ready := false; ; {
		reads := counted.n
		ev, err := d.Next()
		if ready && (err != nil || counted.n > reads) {
			t.Errorf("Next after Ready: %v, %d reads", err, counted.n-reads)
		}
		if err != nil {
			return events, err
		}
		reads = counted.n
		ready = d.Ready() // must leave the data as it is
		if counted.n > reads {
			t.Error("Ready has read")
		}
		retry := ev.Retry.Milliseconds()
		if ev.Retry < 0 {
			retry = -1
		}
		if !ev.HasData && ev.Data != nil {
			t.Errorf("data %q of an event without", ev.Data)
		}
		data := ""
		if ev.HasData {
			data = string(ev.Data) + "\n"
		}
		events = append(events, rendered(ev.Type, ev.ID, data, retry))
	}
}

// counter counts the reads from r.
type counter struct {
	r io.Reader
	n int
}

func (c *counter) Read(p []byte) (int, error) {
	c.n++
	return c.r.Read(p)
}

// FuzzDecode compares with the standard's algorithm, for any way in which the
// text may be cut into reads. With a small bound the events before the error
// must be the same.
func FuzzDecode(f *testing.F) {
	for _, tt := range streams {
		f.Add([]byte(tt.text), []byte{0, 3, 200}, uint16(20))
	}
	f.Fuzz(func(t *testing.T, text, sizes []byte, bound uint16) {
		if len(sizes) == 0 {
			sizes = []byte{255}
		}
		bound = max(bound, 3) // below the length of a byte order mark it matters how that is cut
		want := reference(string(text))
		got, err := decoded(t, &chunks{text: text, sizes: sizes}, 0)
		if err != io.EOF || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%q: got %q, %v; want %q", text, got, err, want)
		}
		bounded, err := decoded(t, &chunks{text: text, sizes: sizes}, int(bound))
		if len(bounded) > len(want) || strings.Join(bounded, "\n") != strings.Join(want[:len(bounded)], "\n") {
			t.Errorf("%q: within %d bytes: got %q; want %q", text, bound, bounded, want)
		}
		whole, again := decoded(t, bytes.NewReader(text), int(bound))
		if len(whole) != len(bounded) || again != err || err != io.EOF && err != ErrTooLarge {
			t.Errorf("%q: %d events and %v in pieces, %d events and %v whole", text, len(bounded), err, len(whole), again)
		}
	})
}

func TestEncodedEventsDecodeInAnyPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var stream []byte
		var want []string
		last := ""
		for range rapid.IntRange(0, 5).Draw(t, "events") {
			id := rapid.StringMatching(`[a-z0-9-]{0,8}`).Draw(t, "id")
			data := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a\r\n]{0,8}`)).Draw(t, "data")
			stream = AppendEvent(stream, id, []byte(data))
			if id != "" {
				last = id
			}
			lines := strings.ReplaceAll(strings.ReplaceAll(data, "\r\n", "\n"), "\r", "\n")
			want = append(want, rendered("message", last, lines+"\n", -1))
			if rapid.Bool().Draw(t, "comment") {
				stream = AppendComment(stream, rapid.String().Draw(t, "text"))
			}
		}
		sizes := rapid.SliceOfN(rapid.Byte(), 1, 4).Draw(t, "sizes")
		var got []string
		d := NewDecoder(&chunks{text: stream, sizes: sizes}, 0)
		for {
			ev, err := d.Next()
			if err != nil {
				break
			}
			got = append(got, rendered(ev.Type, ev.ID, string(ev.Data)+"\n", -1))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("%q: got %q, want %q", stream, got, want)
		}
	})
}
