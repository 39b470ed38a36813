package main

import (
	"bytes"
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/check.md anew")

const checkDocument = "../../docs/check.md"

// What differs from run to run, and how the document spells it.
var (
	anyTime    = regexp.MustCompile(`answered in \d+ ms|"milliseconds": \d+`)
	beginPrint = regexp.MustCompile(`(?m)^<!-- printed: (.+) -->$`)
)

const endPrint = "<!-- end of what was printed -->"

// printed is everything that a run of check shows, as a person at a shell sees it.
func printed(t *testing.T, args []string, instead *strings.Replacer) string {
	t.Helper()
	out, err := runCheck(t, args...)
	status := "0"
	if err != nil {
		out += "bridge: " + err.Error() + "\n"
		status = "1"
	}
	text := "$ bridge check " + strings.Join(args, " ") + "\n" + out + "$ echo $?\n" + status + "\n"
	return anyTime.ReplaceAllStringFunc(instead.Replace(text), func(s string) string {
		if strings.HasPrefix(s, "answered") {
			return "answered in 3 ms"
		}
		return `"milliseconds": 3`
	})
}

// printouts are the runs that the document shows.
func printouts(t *testing.T) map[string]func() string {
	over := func(address string, flags ...string) func() string {
		return func() string {
			u, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			u.Path = "/mcp"
			return printed(t, append(flags, u.String()), strings.NewReplacer(u.Host, "127.0.0.1:9000"))
		}
	}
	command := func(kind string) func() string {
		return func() string {
			args := append([]string{"--"}, cannedKind(t, kind)...)
			return printed(t, args, strings.NewReplacer(strings.Join(args[1:], " "), "my-server", filepath.Base(args[1]), "my-server"))
		}
	}
	kind := func(kind string) string { return answering(t, 400, cannedAnswers[kind]).URL }
	return map[string]func() string{
		"modern":            over(kind("weather")),
		"modern command":    command("weather"),
		"modern as JSON":    over(kind("weather"), "--json"),
		"dual-era":          over(kind("dual")),
		"dual-era command":  command("dual"),
		"dual-era, relayed": over(kind("dual"), "--legacy-relay", "always"),
		"legacy":            over(kind("legacy")),
		"legacy command":    command("legacy"),
		"dead":              over(deadURL),
		"dead command":      command("dead"),
	}
}

// TestPrintoutsInTheDocumentAreTrue compares docs/check.md with what check
// prints today; with -update it writes that there.
func TestPrintoutsInTheDocumentAreTrue(t *testing.T) {
	document, err := os.ReadFile(checkDocument)
	if err != nil {
		t.Fatal(err)
	}
	runs := printouts(t)
	var out bytes.Buffer
	for rest := string(document); rest != ""; {
		at := beginPrint.FindStringSubmatchIndex(rest)
		if at == nil {
			out.WriteString(rest)
			break
		}
		name := rest[at[2]:at[3]]
		run := runs[name]
		_, after, ended := strings.Cut(rest[at[1]:], endPrint)
		if run == nil || !ended {
			t.Fatalf("docs/check.md has a printout %q without a run or an end", name)
		}
		delete(runs, name)
		out.WriteString(rest[:at[1]] + "\n```text\n" + run() + "```\n" + endPrint)
		rest = after
	}
	for name := range runs {
		t.Errorf("docs/check.md lacks the printout %q", name)
	}
	if *update {
		if err := os.WriteFile(checkDocument, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(out.Bytes(), document) {
		t.Errorf("docs/check.md is not what check prints; run go test ./cmd/bridge -run Printouts -update and look at the difference")
	}
}
