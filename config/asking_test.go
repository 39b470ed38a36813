package config

import (
	"strings"
	"testing"
)

func TestAPageDoesNotHideAnEndpoint(t *testing.T) {
	for address, wrong := range map[string]bool{"http://h/mcp": true, "http://h/mcp/": true, "http://h/m": false, "http://h/mcp/questions": false} {
		_, err := Load(Sources{Flags: []Setting{{Key: "upstream", Values: []string{"http://h/mcp"}}, {Key: "questions", Values: []string{"page"}}, {Key: "questions.url", Values: []string{address}}}})
		if (err != nil) != wrong || wrong && !strings.Contains(err.Error(), "hide the endpoint") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestQuestionsThatCannotWork(t *testing.T) {
	for key, text := range map[string]string{
		"questions.url":  "https://bridge.example.com",
		"sampling.model": "openai",
		"sampling.url":   "ftp://x",
		"roots":          "file:///there/is/no/such/folder",
		"roots.by":       "ada: http://no.folder/",
		"roots.header":   "two words",
		"questions.open": "no-such-command-here --now",
	} {
		flags := []Setting{{Key: "upstream", Values: []string{"http://h/mcp"}}}
		if key == "sampling.model" {
			flags = append(flags, Setting{Key: "sampling.provider", Values: []string{text}})
		} else {
			flags = append(flags, Setting{Key: key, Values: []string{text}})
		}
		if _, err := Load(Sources{Flags: flags}); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
	unasked := []Setting{{Key: "upstream", Values: []string{"http://h/mcp"}}, {Key: "questions.url", Values: []string{"https://h/questions"}}}
	if _, err := Load(Sources{Flags: unasked}); err == nil || !strings.Contains(err.Error(), "add questions: page") {
		t.Errorf("an address of a page where nobody is asked on one: %v", err)
	}
}
