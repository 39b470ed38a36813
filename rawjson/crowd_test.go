package rawjson

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// crowded returns an object of n members, and what more says.
func crowded(n int, more string) []byte {
	var b strings.Builder
	b.WriteString(`{"first":1`)
	for i := range n {
		b.WriteString(`,"` + strconv.FormatInt(int64(i), 36) + `":1`)
	}
	return []byte(b.String() + more + `}`)
}

// sizes are on either side of where a name is noted elsewhere, where a scan waits for its turn, and where the
// table has no room for all.
var sizes = []int{maxLinear - 1, maxLinear, 3 * maxLinear, pieceNames, fewPieces * pieceNames, fewSlots / 2, manySlots/2 + pieceNames}

func TestALargeObjectHasEachNameOnce(t *testing.T) {
	for _, n := range sizes {
		for name, tt := range map[string]struct {
			more      string
			duplicate bool
		}{
			"each once":               {"", false},
			"the first one again":     {`,"first":1`, true},
			"the same with an escape": {`,"fir\u0073t":1`, true},
			"an escape of another":    {`,"fir\u0074t":1`, false},
			"names of another object": {fmt.Sprintf(`,"inner":%s,"after":1`, crowded(n, "")), false},
			"again behind another":    {fmt.Sprintf(`,"inner":%s,"first":1`, crowded(n, "")), true},
			"twice within another":    {fmt.Sprintf(`,"inner":%s`, crowded(n, `,"first":1`)), true},
		} {
			if err := Validate(crowded(n, tt.more)); errors.Is(err, ErrDuplicate) != tt.duplicate || !tt.duplicate && err != nil {
				t.Errorf("%d members, %s: %v", n, name, err)
			}
		}
	}
}

// Nobody is charged for what a scan keeps: it is a part of what the text takes.
func TestTheNamesOfALargeObjectTakeLessThanTheText(t *testing.T) {
	text := crowded(400_000, "")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := Validate(text)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err != nil || took > uint64(len(text)) {
		t.Errorf("%d bytes took %d more: %v", len(text), took, err)
	}
}

// Few scans keep many names at once, and each gives its turn back, be the text right or wrong.
func TestScansOfManyNamesTakeTurns(t *testing.T) {
	texts := [][]byte{crowded(5*pieceNames, ""), crowded(5*pieceNames, `,"first":1`), crowded(5*pieceNames, `,`), crowded(5*pieceNames, `}{`)}
	done := make(chan struct{})
	const scans = 4 * manyScans
	for i := range scans {
		go func() {
			_ = Validate(texts[i%len(texts)])
			done <- struct{}{}
		}()
	}
	for range scans {
		<-done
	}
	if n := len(turns); n != 0 {
		t.Errorf("%d scans hold on to their turns", n)
	}
}

// Objects with the same members in another order are compared by places in their texts.
func TestObjectsThatAreReorderedTakeLittleMemoryToCompare(t *testing.T) {
	const n = 100_000
	var a, b strings.Builder
	for i := range n {
		fmt.Fprintf(&a, `,"%d":1`, i)
		fmt.Fprintf(&b, `,"%d":1`, n-1-i)
	}
	x, y := []byte(`{`+a.String()[1:]+`}`), []byte(`{`+b.String()[1:]+`}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	same := Equal(x, y)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; !same || took > uint64(2*len(x)+len(y)) {
		t.Errorf("%d bytes took %d, equal %v", len(x)+len(y), took, same)
	}
}
