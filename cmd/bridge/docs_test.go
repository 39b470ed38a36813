package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/config"
)

var (
	yamlBlock  = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	shellWord  = regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s&]+`)
	shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")
)

// documents returns the text of every document for users.
func documents(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, name := range append(names, "../../README.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(name)] = string(text)
	}
	return texts
}

func TestConfigurationsInTheDocumentsAreValid(t *testing.T) {
	checked := 0
	for name, text := range documents(t) {
		for _, block := range yamlBlock.FindAllStringSubmatch(text, -1) {
			if strings.Contains(block[1], "apiVersion:") || strings.Contains(block[1], "services:") {
				continue // of another program
			}
			file := filepath.Join(t.TempDir(), "example.yaml")
			if err := os.WriteFile(file, []byte(block[1]), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := config.Load(config.Sources{File: file}); err != nil {
				t.Errorf("an example in %s is wrong: %v\n%s", name, err, block[1])
			}
			checked++
		}
	}
	if checked < 3 {
		t.Errorf("only %d examples were found", checked)
	}
}

func TestCommandLinesInTheDocumentsAreValid(t *testing.T) {
	checked := 0
	for name, text := range documents(t) {
		for _, block := range shellBlock.FindAllStringSubmatch(text, -1) {
			for line := range strings.Lines(block[1]) {
				if args := bridgeArgs(line); args != nil {
					checkCommandLine(t, name, args)
					checked++
				}
			}
		}
	}
	if checked < 5 {
		t.Errorf("only %d command lines were found", checked)
	}
}

// inlineStdio finds `bridge stdio` within a sentence, which is run for a client
// that says nothing.
var inlineStdio = regexp.MustCompile("`(bridge stdio [^`\n]*--upstream [^`\n]+)`")

func TestCommandLinesWithinSentencesOfTheDocumentsRun(t *testing.T) {
	checked := 0
	for name, text := range documents(t) {
		for _, found := range inlineStdio.FindAllStringSubmatch(text, -1) {
			args := bridgeArgs(strings.ReplaceAll(found[1], " URL", " "+deadURL))
			if err := run(t.Context(), args, surroundings{in: strings.NewReader(""), out: io.Discard, err: io.Discard}); err != nil {
				t.Errorf("%s has `%s`: %v", name, found[1], err)
			}
			checked++
		}
	}
	if checked == 0 {
		t.Error("no command line was found")
	}
}

// bridgeArgs returns the arguments of a line that calls the bridge.
func bridgeArgs(line string) []string {
	line, _, _ = strings.Cut(line, " #")
	line = strings.TrimPrefix(strings.TrimSpace(line), "go run ./cmd/")
	words := shellWord.FindAllString(line, -1)
	for i, word := range words {
		words[i] = strings.Trim(word, `'"`)
	}
	for len(words) > 0 && strings.HasPrefix(words[0], "BRIDGE_") {
		words = words[1:]
	}
	if len(words) == 0 || words[0] != "bridge" {
		return nil
	}
	return words[1:]
}

func checkCommandLine(t *testing.T, document string, args []string) {
	t.Helper()
	root := newRoot(surroundings{in: strings.NewReader(""), out: io.Discard, err: io.Discard})
	cmd, rest, err := root.Find(args)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err != nil {
		t.Errorf("%s has the command line %q: %v", document, args, err)
	}
}
