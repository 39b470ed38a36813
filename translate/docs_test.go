package translate

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Comments cite rules by number; whoever reads one must be able to look it up.
func TestEveryCitedRuleIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../docs/translation.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile(`\*\*([A-Z]-?[TI]?\d+)\*\*`).FindAllSubmatch(doc, -1) {
		documented[string(m[1])] = true
	}
	cited := regexp.MustCompile(`\b(?:[A-JMP]-(?:[TI]?\d+)|Q\d+)\b`)
	err = filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && (name == "node_modules" || name == "testdata" || name != ".." && strings.HasPrefix(name, ".")) {
			return fs.SkipDir
		}
		if entry.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, line := range strings.Split(string(text), "\n") {
			_, comment, ok := strings.Cut(line, "//")
			if !ok {
				continue
			}
			for _, rule := range cited.FindAllString(comment, -1) {
				if !documented[rule] {
					t.Errorf("%s cites %s, which docs/translation.md does not explain", path, rule)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
