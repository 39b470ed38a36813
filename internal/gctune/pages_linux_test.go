package gctune

import (
	"encoding/binary"
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

// The stretch begins where the arena does, and the heap somewhere in it: before it is what cannot be collapsed, at which all of it ended.
func TestWhatTheHeapHadTouchedIsCollapsed(t *testing.T) {
	if mode, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled"); err != nil || strings.Contains(string(mode), "[never]") {
		t.Skip("no transparent huge pages")
	}
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(base)
	defer func() { floor.Store(0); debug.SetGCPercent(before) }()
	kept := make([][]byte, 256) // 8 MiB
	for i := range kept {
		kept[i] = make([]byte, 32<<10)
		for at := 0; at < len(kept[i]); at += 4096 {
			kept[i][at] = 1
		}
	}
	Floor(32<<20, true)
	for range 1000 {
		if ordinary(t, kept) == 0 {
			break
		}
		collect()
		runtime.Gosched()
	}
	if ordinary(t, kept) != 0 {
		t.Skip("nothing was asked for")
	}
	huge, all := 0, 0
	for _, block := range kept {
		for at := 0; at < len(block); at += 4096 {
			all++
			if inHugePage(t, uintptr(unsafe.Pointer(&block[at]))) {
				huge++
			}
		}
	}
	if huge < all/2 {
		t.Errorf("of %d pages that had been touched %d lie in huge ones", all, huge)
	}
	runtime.KeepAlive(kept)
}

// inHugePage asks the kernel, which tells root alone, whether an address lies in a transparent huge page.
func inHugePage(t *testing.T, at uintptr) bool {
	t.Helper()
	entry := func(path string, number uint64) uint64 {
		file, err := os.Open(path)
		if err != nil {
			t.Skip("left out: this user may not ask:", err)
		}
		defer file.Close()
		var b [8]byte
		if _, err := file.ReadAt(b[:], int64(number*8)); err != nil {
			t.Skip("left out:", err)
		}
		return binary.NativeEndian.Uint64(b[:])
	}
	const present, frame, thp = 1 << 63, 1<<55 - 1, 1 << 22
	e := entry("/proc/self/pagemap", uint64(at)/4096)
	if e&present == 0 {
		return false
	}
	if e&frame == 0 {
		t.Skip("left out: this user may not ask")
	}
	return entry("/proc/kpageflags", e&frame)&thp != 0
}
