package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/config"
)

func TestPrintedDefaultsAreAValidFileOnceTheUpstreamIsKnown(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bridge.yaml")
	if err := os.WriteFile(file, []byte(prints(t, nil, "config", "defaults")), 0o600); err != nil {
		t.Fatal(err)
	}
	got := prints(t, []string{"BRIDGE_CONFIG=" + file, "BRIDGE_UPSTREAM=https://a.example/mcp?token=hush"}, "config", "validate")
	if want := "ok: 127.0.0.1:8080/mcp -> https://a.example/mcp\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := fails(t, nil, "config", "validate", file); exitCode(err) != exitUsage {
		t.Errorf("a file without an upstream: %v", err)
	}
}

func TestValidateLoadsTheFilesOfTLSAsServeDoes(t *testing.T) {
	files, _ := writePair(t, t.TempDir(), 1)
	file := filepath.Join(t.TempDir(), "bridge.yaml")
	text := "tls: {cert: /no/c, key: /no/k}\nlimits: {rounds: 0}\nupstreams:\n" +
		"- {path: /a, upstream: https://a.example, upstream-tls: {ca: /no/ca, cert: " + files.Cert + ", key: /no/k2}}\n" +
		"- {path: /b, upstream: https://b.example, upstream-tls: {ca: " + files.Key + "}}\n" +
		"- {path: /c, upstream: https://c.example, upstream-tls: {cert: /no/pair}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	err := fails(t, nil, "config", "validate", file)
	want := "6 problems in the configuration\n" +
		"  " + file + ":2: limits.rounds: 0 is out of range; use 1 to 1000\n" +
		"  " + file + ":6: upstreams[2].upstream-tls.key: is missing; upstreams[2].upstream-tls.cert needs it\n" +
		"  tls.cert: the certificate cannot be loaded from /no/c and /no/k: stat /no/c: no such file or directory\n" +
		"  /a: upstream-tls.ca: open /no/ca: no such file or directory\n" +
		"  /a: upstream-tls.cert: open /no/k2: no such file or directory\n" +
		"  /b: upstream-tls.ca: " + files.Key + " holds no certificate in PEM form"
	if err.Error() != want || exitCode(err) != exitUsage {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	text = "tls: {cert: " + files.Cert + ", key: " + files.Key + "}\nupstream: https://a.example\nupstream-tls: {ca: " + files.Cert + "}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	prints(t, nil, "config", "validate", file)
}

func TestValidateWithoutAFileSaysSo(t *testing.T) {
	err := fails(t, []string{"BRIDGE_PROFILE=minimal"}, "config", "validate")
	want := "2 problems in the configuration\n  upstream: is missing; give the URL of the server's MCP endpoint, or a command\n" +
		"  no file was named: give one, like `bridge config validate bridge.yaml`, or set BRIDGE_CONFIG"
	if err.Error() != want || exitCode(err) != exitUsage {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	prints(t, []string{"BRIDGE_UPSTREAM=https://a.example"}, "config", "validate") // nothing is missing
}

// TestConfigurationDocumentIsUpToDate keeps docs/configuration.md equal to what
// the code says; `make docs` writes it anew.
func TestValidateTellsOfProxiesThatAreEverybody(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bridge.yaml")
	if err := os.WriteFile(file, []byte("upstream: http://h/mcp\ntrusted-proxies: ['::/0']\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, notes, err := validate(file, nil)
	if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "::/0 holds everybody") {
		t.Errorf("%q, %v", notes, err)
	}
}

func TestConfigurationDocumentIsUpToDate(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := replaceGenerated(text)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, want) {
		t.Error("docs/configuration.md is not up to date; run `make docs`")
	}
}

func TestConfigDocsWritesIntoAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "d.md")
	text := "# before\n" + string(docsBegin) + "old\n" + string(docsEnd) + "after\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	prints(t, nil, "config", "docs", "--write", file)
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := "# before\n" + string(docsBegin) + config.RenderTable() + string(docsEnd) + "after\n"
	if string(got) != want {
		t.Errorf("got %s", got)
	}
	if prints(t, nil, "config", "docs") != config.RenderTable() {
		t.Error("without --write it does not print the table")
	}
}

func TestVersionNamesTheProtocols(t *testing.T) {
	got := prints(t, nil, "version")
	for _, part := range []string{"2024-11-05", "2025-11-25", "2026-07-28"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is not in %q", part, got)
		}
	}
}

func TestDemoAnswersItsOwnQuestionsWithoutATerminal(t *testing.T) {
	if got := prints(t, nil, "demo", "--once"); !strings.Contains(got, "Booked") {
		t.Errorf("the demo printed\n%s", got)
	}
}
