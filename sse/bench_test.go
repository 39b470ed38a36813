package sse

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// endless repeats a text for ever.
type endless struct {
	text []byte
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	return n, nil
}

func benchEvent(size int) []byte {
	return AppendEvent(nil, "s1-17", []byte(`{"text":"`+strings.Repeat("x", size)+`"}`))
}

func BenchmarkDecode(b *testing.B) {
	for name, size := range map[string]int{"300B": 290, "100KB": 100 << 10} {
		b.Run(name, func(b *testing.B) {
			text := benchEvent(size)
			d := NewDecoder(&endless{text: text}, 0)
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if ev, err := d.Next(); err != nil || len(ev.Data) < size {
					b.Fatal(ev, err)
				}
			}
		})
	}
}

// BenchmarkDecodeResponse reads what one upstream call yields: a progress
// notification and the result, with a pooled decoder.
func BenchmarkDecodeResponse(b *testing.B) {
	text := append(benchEvent(100), benchEvent(300)...)
	d := NewDecoder(nil, 0)
	r := bytes.NewReader(text)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r.Reset(text)
		d.Reset(r, 0)
		for n := 0; ; n++ {
			if _, err := d.Next(); err != nil {
				if err != io.EOF || n != 2 {
					b.Fatal(n, err)
				}
				break
			}
		}
	}
}

// BenchmarkDecodeHostile reads text whose every byte is the end of a line, in
// one large buffer.
func BenchmarkDecodeHostile(b *testing.B) {
	text := append([]byte("id:1"), bytes.Repeat([]byte("\r:"), 1<<19)...)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := NewDecoder(bytes.NewReader(text), 0).Next(); err != io.EOF && err != ErrTooLarge {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendEvent(b *testing.B) {
	data := []byte(`{"text":"` + strings.Repeat("x", 290) + `"}`)
	dst := make([]byte, 0, 1024)
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		dst = AppendEvent(dst[:0], "s1-17", data)
	}
}

func TestAllocationBudget(t *testing.T) {
	dst := make([]byte, 0, 1024)
	data := []byte(`{"a":1}`)
	d := NewDecoder(&endless{text: benchEvent(290)}, 0)
	for name, f := range map[string]func(){
		"AppendEvent":   func() { dst = AppendEvent(dst[:0], "s1-17", data) },
		"AppendPriming": func() { dst = AppendPriming(dst[:0], "s1-17") },
		"AppendComment": func() { dst = AppendComment(dst[:0], "ping") },
		"Next, id seen before": func() {
			if _, err := d.Next(); err != nil {
				t.Error(err)
			}
		},
	} {
		if got := testing.AllocsPerRun(100, f); got != 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}

func TestResetLetsGoOfLargeBuffers(t *testing.T) {
	d := NewDecoder(bytes.NewReader(benchEvent(1<<20)), 0)
	if _, err := d.Next(); err != nil {
		t.Fatal(err)
	}
	d.Reset(nil, 0)
	if n := cap(d.in.buf); n > keepBuffer {
		t.Errorf("%d bytes kept", n)
	}
}
