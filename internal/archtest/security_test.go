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

// TestEveryThreatHasATestThatExists: docs/security.md promises no more than what is
// held.
func TestEveryThreatHasATestThatExists(t *testing.T) {
	var all strings.Builder
	for _, file := range files(t, ".go") {
		if strings.HasSuffix(file, "_test.go") {
			all.WriteString(read(t, file))
		}
	}
	threats := 0
	for _, row := range threatRow.FindAllStringSubmatch(read(t, "docs/security.md"), -1) {
		if row[1] == "held by" || row[1] == "---" {
			continue
		}
		threats++
		tests := testName.FindAllStringSubmatch(row[1], -1)
		if len(tests) == 0 {
			t.Errorf("no test holds: %s", row[0])
		}
		for _, test := range tests {
			if !strings.Contains(all.String(), "func "+test[1]+"(") {
				t.Errorf("docs/security.md names %s, which does not exist", test[1])
			}
		}
	}
	if threats < 20 {
		t.Errorf("only %d threats were found", threats)
	}
}
