//go:build !purego

package rawjson

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// withoutBlocks runs f as on a machine whose processor lacks what the block
// functions need.
func withoutBlocks(f func()) {
	defer func(v bool) { haveAVX2 = v }(haveAVX2)
	haveAVX2 = false
	f()
}

func needBlocks(t testing.TB) {
	if !haveAVX2 {
		t.Skip("this processor has no AVX2")
	}
}

// sameAsLoops checks that the block functions change nothing but the time.
func sameAsLoops(t *testing.T, text []byte) {
	t.Helper()
	got, end := Validate(text), skipString(text, 0)
	var want error
	var wantEnd int
	withoutBlocks(func() { want, wantEnd = Validate(text), skipString(text, 0) })
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%q: %v with blocks, %v without", text, got, want)
	}
	if got == nil && end != wantEnd {
		t.Fatalf("%q: ends at %d with blocks, at %d without", text, end, wantEnd)
	}
}

func TestBlocksJudgeAsTheLoopsDo(t *testing.T) {
	needBlocks(t)
	for _, pad := range paddings {
		for _, part := range parts {
			for lead := range 150 {
				text := `"` + strings.Repeat("x", lead%len(pad)) + strings.Repeat(pad, lead/len(pad)) + part
				sameAsLoops(t, []byte(text+strings.Repeat(pad, 100/len(pad))+`"`))
				if lead%7 == 0 {
					sameAsLoops(t, []byte(text)) // the text is cut off
				}
			}
		}
	}
}

func TestBlocksKnowUTF8(t *testing.T) {
	needBlocks(t)
	text := []byte(`"` + strings.Repeat("x", 200) + `"`)
	at := 100
	for first := 0x80; first <= 0xFF; first++ {
		for second := range 256 {
			for _, rest := range []string{"xx", "\x80x", "\xbf\x80", "\xbf\xbf", "\xc3\xa9"} {
				sequence := append([]byte{byte(first), byte(second)}, rest...)
				copy(text[at:], sequence)
				valid := utf8.Valid(sequence) && second >= ' ' && second != '"' && second != '\\'
				if err := Validate(text); (err == nil) != valid {
					t.Fatalf("% x at %d: %v", sequence, at, err)
				}
				at = 90 + (at-89)%64
				copy(text[90:], strings.Repeat("x", 80))
			}
		}
	}
}

func TestBlocksNoticeEscapedNames(t *testing.T) {
	long := strings.Repeat("n", 200)
	text := `{"` + long + `\/":1,"` + long + `/":2}`
	if err := Validate([]byte(text)); !errors.Is(err, ErrDuplicate) {
		t.Error(err)
	}
}

// FuzzBlocks compares the block functions with the loops that they spare.
func FuzzBlocks(f *testing.F) {
	needBlocks(f)
	for _, pad := range paddings {
		for k, part := range parts {
			f.Add([]byte(strings.Repeat(pad, 150/len(pad)) + part + strings.Repeat(pad, k) + `"`))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		sameAsLoops(t, append([]byte{'"'}, b...))
		sameAsLoops(t, append([]byte("\""+strings.Repeat("x", 40)), b...))
		sameAsLoops(t, append(append([]byte{'"'}, b...), append(b, '"')...))
	})
}
