package message

import (
	"bytes"
	"testing"
)

func TestFramesKeepTheirOrderAndShareWhatIsLong(t *testing.T) {
	var f Frames
	if !f.None() || f.Len() != 0 || len(f.Pieces(nil, 0)) != 0 {
		t.Error("the zero Frames are some")
	}
	long := bytes.Repeat([]byte("x"), 1<<20)
	add := func(text string) { buf := f.Buffer(); *buf = append(*buf, text...) }
	add("....a")
	f.Share(long)
	add("b")
	f.Share(long)
	pieces := f.Pieces(nil, 4)
	if got, want := bytes.Join(pieces, nil), "a"+string(long)+"b"+string(long); string(got) != want || f.Len() != len(want)+4 {
		t.Errorf("%d bytes, and %d in all, want %d", len(got), f.Len(), len(want))
	}
	if &pieces[1][0] != &long[0] {
		t.Error("it was copied")
	}
	if f.Release(); !f.None() || f.Len() != 0 {
		t.Error("something is left")
	}
}
