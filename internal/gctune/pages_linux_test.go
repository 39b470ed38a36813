package gctune

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"unsafe"
)

func TestTheHeapAsksForHugePagesWhenItFirstGrowsToTheFloor(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil || unsafe.Sizeof(uintptr(0)) < 8 {
		t.Skip("left out: this system has no transparent huge pages, or small addresses")
	}
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(base)
	defer func() {
		floor.Store(0)
		debug.SetGCPercent(before)
	}()
	kept := make([][]byte, 100)
	for i := range kept {
		kept[i] = make([]byte, 32<<10)
	}
	asked := ordinary(t, kept) == 0 // by an earlier run of this test
	Floor(32<<20, true)
	if !asked && ordinary(t, kept) == 0 {
		t.Error("asked before anything has grown")
	}
	for range 1000 { // the finalizer runs in a goroutine of its own
		if ordinary(t, kept) == 0 {
			return
		}
		collect()
		runtime.Gosched()
	}
	t.Errorf("what lies at %x has ordinary pages", ordinary(t, kept))
}

// ordinary returns the address of a block in pages for which nobody asked that they be huge ones, 0 if there is none.
func ordinary(t *testing.T, blocks [][]byte) uintptr {
	t.Helper()
	for _, b := range blocks {
		if at := uintptr(unsafe.Pointer(&b[0])); !asksForHugePages(t, at) {
			return at
		}
	}
	return 0
}

var mapping = regexp.MustCompile(`^[0-9a-f]+-[0-9a-f]+ `)

// asksForHugePages reports whether the mapping with an address was advised so.
func asksForHugePages(t *testing.T, at uintptr) bool {
	t.Helper()
	mappings, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	var here bool
	for line := range strings.Lines(string(mappings)) {
		if mapping.MatchString(line) {
			var from, to uintptr
			if _, err := fmt.Sscanf(line, "%x-%x ", &from, &to); err != nil {
				t.Fatal(err)
			}
			here = from <= at && at < to
		} else if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && here {
			return strings.Contains(flags+" ", " hg ")
		}
	}
	t.Fatalf("nothing is mapped at %x", at)
	return false
}
