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

// TestConfigurationDocumentIsUpToDate keeps docs/configuration.md equal to what
// the code says; `make docs` writes it anew.
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
