package archtest

import (
	"regexp"
	"strings"
	"testing"
)

var (
	threatRow = regexp.MustCompile(`(?m)^\| [^|]+ \| [^|]+ \| ([^|]*) \|$`)
	testName  = regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
)

// TestEveryThreatHasATestThatExists: docs/security.md and docs/regressions.md promise no
// more than what is held.
func TestEveryThreatHasATestThatExists(t *testing.T) {
	var all strings.Builder
	for _, file := range files(t, ".go") {
		if strings.HasSuffix(file, "_test.go") {
			all.WriteString(read(t, file))
		}
	}
	for page, rows := range map[string]int{"docs/security.md": 40, "docs/regressions.md": 50} {
		found := 0
		for _, row := range threatRow.FindAllStringSubmatch(read(t, page), -1) {
			if row[1] == "held by" || row[1] == "---" {
				continue
			}
			found++
			tests := testName.FindAllStringSubmatch(row[1], -1)
			if len(tests) == 0 {
				t.Errorf("%s: no test holds: %s", page, row[0])
			}
			for _, test := range tests {
				if !strings.Contains(all.String(), "func "+test[1]+"(") {
					t.Errorf("%s names %s, which does not exist", page, test[1])
				}
			}
		}
		if found < rows {
			t.Errorf("%s: only %d rows were found, of %d at least", page, found, rows)
		}
	}
}
