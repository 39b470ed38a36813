package gctune

import (
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"unsafe"
)

func TestTheHeapBelowTheFloorAsksForHugePages(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil || unsafe.Sizeof(uintptr(0)) < 8 {
		t.Skip("left out: this system has no transparent huge pages, or small addresses")
	}
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(base)
	defer func() {
		floor.Store(0)
		debug.SetGCPercent(before)
	}()
	Floor(32<<20, true)
	kept := make([][]byte, 100)
	for i := range kept {
		kept[i] = make([]byte, 32<<10)
	}
	for _, k := range kept {
		if at := uintptr(unsafe.Pointer(&k[0])); !asksForHugePages(t, at) {
			t.Fatalf("what lies at %x has ordinary pages", at)
		}
	}
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
