package archtest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
	code    = regexp.MustCompile("`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	noise   = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	adrName = regexp.MustCompile(`^(\d{4})-[a-z0-9-]+\.md$`)
)

func TestLinksInTheDocumentationResolve(t *testing.T) {
	for _, file := range files(t, ".md") {
		text := code.ReplaceAllString(fence.ReplaceAllString(read(t, file), ""), "")
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			if target := match[1]; !strings.Contains(target, "://") && !strings.HasPrefix(target, "mailto:") {
				checkLink(t, file, target)
			}
		}
	}
}

func checkLink(t *testing.T, file, target string) {
	name, anchor, _ := strings.Cut(target, "#")
	if name == "" {
		name = file
	} else {
		name = path.Join(path.Dir(file), name)
	}
	if _, err := os.Stat(filepath.Join(root, name)); err != nil {
		t.Errorf("%s links to %s, which does not exist", file, target)
		return
	}
	if anchor != "" && !anchors(read(t, name))[anchor] {
		t.Errorf("%s links to %s, but %s has no such heading", file, target, name)
	}
}

// anchors returns the names that a Markdown renderer gives to headings.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		name := noise.ReplaceAllString(strings.ToLower(match[1]), "")
		found[strings.ReplaceAll(name, " ", "-")] = true
	}
	return found
}

func TestDecisionsAreNumberedOnce(t *testing.T) {
	taken := map[string]string{}
	for _, file := range files(t, ".md") {
		dir, name := path.Split(file)
		if dir != "docs/adr/" || name == "README.md" {
			continue
		}
		match := adrName.FindStringSubmatch(name)
		if match == nil {
			t.Errorf("%s is not named NNNN-what-was-decided.md", file)
			continue
		}
		if other := taken[match[1]]; other != "" {
			t.Errorf("%s and %s have the same number", other, file)
		}
		taken[match[1]] = file
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
