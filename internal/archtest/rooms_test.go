package archtest

import (
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// largeRoom is from how many lines on a room says in docs/architecture.md why it is so large.
const largeRoom = 1500

// roomSize is a room with its size as that page has it.
var roomSize = regexp.MustCompile("`([a-z0-9/]+)` \\(([0-9,]+)\\)")

// TestLargeRoomsSayWhy: every room of the program above largeRoom is on the page, with its lines,
// without tests and doc.go, within a tenth; a room that has become smaller has left it.
func TestLargeRoomsSayWhy(t *testing.T) {
	lines := map[string]int{}
	for _, file := range files(t, ".go") {
		room := path.Dir(file)
		if !withinAny(room, beside) && !strings.HasSuffix(file, "_test.go") && path.Base(file) != "doc.go" {
			lines[room] += strings.Count(read(t, file), "\n")
		}
	}
	_, section, _ := strings.Cut(read(t, "docs/architecture.md"), "## Rooms above 1,500 lines\n")
	section, _, _ = strings.Cut(section, "\n## ")
	said := map[string]int{}
	for _, room := range roomSize.FindAllStringSubmatch(section, -1) {
		n, err := strconv.Atoi(strings.ReplaceAll(room[2], ",", ""))
		if err != nil {
			t.Error(err)
		}
		said[room[1]] = n
	}
	for room, n := range lines {
		if n > largeRoom && said[room] == 0 {
			t.Errorf("%s has %d lines; docs/architecture.md, Rooms above 1,500 lines, does not say why", room, n)
		}
	}
	for room, n := range said {
		if is := lines[room]; is < largeRoom*9/10 || n < is*9/10 || n > is*11/10 {
			t.Errorf("%s has %d lines and not %d, as docs/architecture.md says", room, is, n)
		}
	}
}
