package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	runRow   = regexp.MustCompile("(?m)^\\| \\[`([a-z0-9]+)`\\].*\\| (.*) \\| (.*) \\|$")
	makeName = regexp.MustCompile("`make ([a-z-]+)`")
	quoted   = regexp.MustCompile("`([a-z0-9-]+)`")
)

// TestWhatRunsTheWholeHasARow: test/README.md has every directory beside it, and the stages of
// .ci/run and targets of make that it names exist.
func TestWhatRunsTheWholeHasARow(t *testing.T) {
	stages, targets := read(t, ".ci/run"), read(t, "Makefile")
	rows := map[string]bool{}
	for _, row := range runRow.FindAllStringSubmatch(read(t, "test/README.md"), -1) {
		rows[row[1]] = true
		for _, target := range makeName.FindAllStringSubmatch(row[2], -1) {
			if !strings.Contains(targets, "\n"+target[1]+": ##") {
				t.Errorf("test/README.md names make %s, which does not exist", target[1])
			}
		}
		for _, stage := range quoted.FindAllStringSubmatch(row[3], -1) {
			if !strings.Contains(stages, "\nstage_"+stage[1]+"() {") {
				t.Errorf("test/README.md names the stage %s, which does not exist", stage[1])
			}
		}
	}
	entries, err := os.ReadDir(filepath.Join(root, "test"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name := entry.Name(); entry.IsDir() && !rows[name] {
			t.Errorf("test/README.md has no row for %s", name)
		}
	}
}
