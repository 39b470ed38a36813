package archtest

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	// comparesVersions finds where code asks which revision it is, by package mcp's names or by dates.
	comparesVersions = regexp.MustCompile(`\.AtLeast\(|\.IsDraft\(|[=!<>]= ?(string\()?(mcp\.V20\d|"20\d\d-)|\bcase (string\()?mcp\.V20\d`)
	goFile           = regexp.MustCompile("`([a-z0-9/_]+\\.go)`")
	comment          = regexp.MustCompile(`(?m)//.*$`)
)

// TestVersionsAreComparedWhereItIsSaid holds invariant 15 of AGENTS.md, whose list has every file
// outside of the three rooms that compares versions, and no other.
func TestVersionsAreComparedWhereItIsSaid(t *testing.T) {
	_, invariant, _ := strings.Cut(read(t, "AGENTS.md"), "\n15. ")
	invariant, _, _ = strings.Cut(invariant, "\n16. ")
	listed := map[string]bool{}
	for _, name := range goFile.FindAllStringSubmatch(invariant, -1) {
		listed[name[1]] = true
	}
	for _, file := range files(t, ".go") {
		room := path.Dir(file)
		if strings.HasSuffix(file, "_test.go") || withinAny(room, beside) || withinAny(room, []string{"negotiate", "mcp", "translate"}) {
			continue
		}
		compares := comparesVersions.MatchString(comment.ReplaceAllString(read(t, file), ""))
		if compares != listed[file] {
			t.Errorf("%s: compares versions: %v; invariant 15 of AGENTS.md says %v", file, compares, listed[file])
		}
		delete(listed, file)
	}
	for file := range listed {
		t.Errorf("invariant 15 of AGENTS.md names %s, which does not exist", file)
	}
}
