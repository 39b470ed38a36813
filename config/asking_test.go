package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestAPageDoesNotHideAnEndpoint(t *testing.T) {
	for address, wrong := range map[string]bool{"http://h/mcp": true, "http://h/mcp/": true, "http://h/m": false, "http://h/mcp/questions": false,
		"http://h/mcp/sse": true, "http://h/readyz/": true, "http://h/.well-known": true, "http://h/sse": true} {
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
		"questions.url ": "http://h//", "questions.url  ": "http://h/q/../p", "questions.url   ": "http://h/a//b",
		"questions.url    ": "http://h/fragén", "questions.url     ": "http://h/a;b", "questions.url      ": "http://h/a%20b", "questions.url       ": "http://bücher.example/questions",
		"questions.open": "no-such-command-here --now",
	} {
		key = strings.TrimSpace(key)
		flags := []Setting{{Key: "upstream", Values: []string{"http://h/mcp"}}}
		if key == "questions.url" && strings.HasPrefix(text, "http:") {
			flags = append(flags, Setting{Key: "questions", Values: []string{"page"}})
		}
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

// A header that the bridge takes out before it looks whose roots it has to give says so nowhere else: everybody would get
// everybody's. So it is with tiers, which nobody would be of.
func TestRootsByAHeaderThatNeverComes(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]struct{ alone, trusted string }{
		"X-Forwarded-User": {"X-Auth-Request-User", "X-Auth-Request-User"}, "x-forwarded-email": {"X-Auth-Request-User", "X-Auth-Request-User"},
		"X_Real_Ip": {"X-Auth-Request-User", "X-Auth-Request-User"}, "Host": {"X-Auth-Request-User", "X-Auth-Request-User"},
		"x-auth-request-user": {alone: "trusted-proxies"}, "X-User": {}, "User-Agent": {},
	} {
		for proxies, want := range map[string]string{"": want.alone, "trusted-proxies: [127.0.0.1]\n": want.trusted} {
			for label, text := range map[string]string{
				"roots.header":              "upstream: http://h/mcp\nroots: {header: %s, by: {ada: file://%s}}\n",
				"rates.tier":                "upstream: http://h/mcp\nrates: {tier: 'header:%s', tiers: {gold: 4}} # %s\n",
				"upstreams[0].roots.header": "upstreams:\n  - path: /mcp\n    upstream: http://h/mcp\n    roots: {header: %s, by: {ada: file://%s}}\n",
			} {
				_, err := Load(Sources{File: writeFile(t, fmt.Sprintf(text, name, dir)+proxies)})
				if (err != nil) != (want != "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), label)) {
					t.Errorf("%s, %q: %v", name, proxies, err)
				}
			}
		}
	}
}
