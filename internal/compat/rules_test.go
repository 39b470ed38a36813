package compat

import (
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// weight says how binding a rule is: the letters of docs/translation.md.
type weight string

// mustBeTested reports whether the specification demands or recommends a part of
// the rule. What is a choice alone may go untested.
func (w weight) mustBeTested() bool { return strings.ContainsAny(string(w), "MS") }

var ruleLine = regexp.MustCompile(`(?m)^- \*\*([A-JP]-[IT]?\d+)\*\* \(([MSC–, ]+)\) `)

// rules reads the numbered rules and their weights.
func rules(t *testing.T) map[string]weight {
	t.Helper()
	found := map[string]weight{}
	for _, match := range ruleLine.FindAllStringSubmatch(readFile(t, root+"/docs/translation.md"), -1) {
		if _, twice := found[match[1]]; twice {
			t.Errorf("docs/translation.md explains %s twice", match[1])
		}
		found[match[1]] = weight(match[2])
	}
	if len(found) < 250 {
		t.Fatalf("only %d rules were recognised in docs/translation.md", len(found))
	}
	return found
}

// tables are the sections whose rules have no numbers of their own.
var tables = []string{
	"A.2", "A.3", "A.4", "A.5", "B.2", "B.4", "B.6", "B.8", "C.3", "C.4", "C.5", "C.7", "C.8", "C.9",
	"D.4", "E.9", "F.2", "F.3", "F.4", "G.2", "G.3",
}

var (
	numbered = regexp.MustCompile(`\b[A-JP]-[IT]?\d+\b|\b[A-J]\.\d\b`)
	testName = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	// leading are rules at the beginning of a test's name, as in TestB19B20…
	leading = regexp.MustCompile(`^(?:Test|Fuzz)((?:[A-J]\d+)+)(?:[A-Z]|$)`)
	// trailing are rules behind its underscores, as in …_DT13_DT19.
	trailing = regexp.MustCompile(`^([A-JP])([IT]?)(\d+)$`)
	short    = regexp.MustCompile(`([A-J])(\d+)`)
)

// sections is how many sections without a dash the letters have: a test's name
// that ends in _A4 may mean A.4 as well as A-4, and counts for neither.
var sections = map[string]int{"A": 7, "B": 9, "C": 10, "D": 6, "E": 9, "F": 4, "G": 4, "H": 3, "I": 1}

// citations collects which rules the tests cite, each with a file.
func citations(t *testing.T) map[string]string {
	t.Helper()
	cited := map[string]string{}
	for _, file := range testFiles(t) {
		text := readFile(t, filepath.Join(root, file))
		for _, rule := range numbered.FindAllString(text, -1) {
			cited[rule] = file
		}
		for _, match := range testName.FindAllStringSubmatch(text, -1) {
			for _, rule := range named(match[1]) {
				cited[rule] = file
			}
		}
	}
	return cited
}

// named returns the rules that a test's name cites beyond doubt.
func named(name string) (found []string) {
	add := func(letter, kind, number string) {
		if kind != "" || len(number) > 1 || number > string(rune('0'+sections[letter])) {
			found = append(found, letter+"-"+kind+number)
		}
	}
	if match := leading.FindStringSubmatch(name); match != nil {
		for _, rule := range short.FindAllStringSubmatch(match[1], -1) {
			add(rule[1], "", rule[2])
		}
	}
	for _, part := range strings.Split(name, "_")[1:] {
		if match := trailing.FindStringSubmatch(part); match != nil {
			add(match[1], match[2], match[3])
		}
	}
	return found
}

// testFiles lists the tests of the repository, but for the tests of tests.
func testFiles(t *testing.T) (list []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() && name != root && (base == "node_modules" || base == "testdata" || base == "bin" || strings.HasPrefix(base, ".")) {
			return fs.SkipDir
		}
		file, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		file = filepath.ToSlash(file)
		if strings.HasSuffix(file, "_test.go") && file != "internal/compat/rules_test.go" ||
			strings.HasPrefix(file, "test/") && strings.HasSuffix(file, ".mjs") {
			list = append(list, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// uncovered reads the list of rules that no test checks: one a line, with the
// reason behind a colon.
func uncovered(t *testing.T) map[string]string {
	t.Helper()
	listed := map[string]string{}
	for _, line := range strings.Split(readFile(t, "uncovered.txt"), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		rule, reason, _ := strings.Cut(line, ":")
		if strings.TrimSpace(reason) == "" {
			t.Errorf("uncovered.txt gives no reason for %s", rule)
		}
		listed[rule] = reason
	}
	return listed
}

// TestEveryRuleIsCheckedByATest: each rule that the specification demands or
// recommends is cited by a test, in its name, a comment or a message, or stands
// in uncovered.txt with the reason why not.
func TestEveryRuleIsCheckedByATest(t *testing.T) {
	all, cited, listed := rules(t), citations(t), uncovered(t)
	for _, rule := range slices.Sorted(maps.Keys(all)) {
		switch {
		case cited[rule] != "" && listed[rule] != "":
			t.Errorf("uncovered.txt lists %s, which %s cites", rule, cited[rule])
		case cited[rule] == "" && listed[rule] == "" && all[rule].mustBeTested():
			t.Errorf("no test cites %s", rule)
		}
	}
	for _, table := range tables {
		if cited[table] == "" {
			t.Errorf("no test cites section %s", table)
		}
	}
	for rule := range listed {
		if all[rule] == "" {
			t.Errorf("uncovered.txt lists %s, which is no rule", rule)
		}
	}
}

func TestNamesOfTestsCite(t *testing.T) {
	for name, want := range map[string]string{
		"TestX_DT13_DI4": "D-T13 D-I4", "TestB19B20Walk": "B-19 B-20", "TestX_A28": "A-28",
		"TestX_A4": "", "TestA2Version": "", "TestX": "", "TestX_P4": "P-4", "TestBase64": "",
	} {
		if got := strings.Join(named(name), " "); got != want {
			t.Errorf("%s cites %q, want %q", name, got, want)
		}
	}
}
