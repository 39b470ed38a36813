package main

import (
	"bytes"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// unit returns the sections of a systemd unit: key → values, in order.
func unit(t *testing.T, text string) map[string]map[string][]string {
	t.Helper()
	sections, section := map[string]map[string][]string{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		key, value, ok := strings.Cut(line, "=")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
			sections[section] = map[string][]string{}
		case !ok || section == "":
			t.Errorf("the unit has the line %q", line)
		default:
			sections[section][key] = append(sections[section][key], value)
		}
	}
	return sections
}

func TestTheSystemdUnit(t *testing.T) {
	text := deployed(t, "systemd/bridge.service")
	sections := unit(t, text)
	if got := slices.Sorted(maps.Keys(sections)); !slices.Equal(got, []string{"Install", "Service", "Unit"}) {
		t.Fatalf("sections %q", got)
	}
	service := sections["Service"]
	const program, file = "/usr/local/bin/bridge ", "/etc/bridge/bridge.yaml"
	if got := service["ExecStart"]; len(got) != 1 || !strings.HasPrefix(got[0], program) || !strings.HasSuffix(got[0], file) {
		t.Fatalf("ExecStart=%q", got)
	}
	if got := service["ExecStartPre"]; got != nil {
		t.Errorf("ExecStartPre=%q, whose status prevents no restart", got)
	}
	local := func(line string) []string {
		return strings.Fields(strings.ReplaceAll(strings.TrimPrefix(line, program), file, "../../deploy/bridge.yaml"))
	}
	if err := run(t.Context(), []string{"config", "validate", "../../deploy/bridge.yaml"}, surroundings{out: io.Discard, err: io.Discard}); err != nil {
		t.Errorf("the example configuration: %v", err)
	}
	obeys(t, local(service["ExecStart"][0]), nil)
	if stop, err := time.ParseDuration(service["TimeoutStopSec"][0]); err != nil || stop <= drainTime() {
		t.Errorf("TimeoutStopSec=%q", service["TimeoutStopSec"])
	}
	for key, want := range map[string]string{"DynamicUser": "yes", "NoNewPrivileges": "yes", "ProtectSystem": "strict", "ProtectHome": "yes",
		"CapabilityBoundingSet": "", "RestartPreventExitStatus": "2", "ExecReload": "/bin/kill -HUP $MAINPID"} {
		if got := service[key]; len(got) != 1 || got[0] != want {
			t.Errorf("%s=%q", key, got)
		}
	}
	verifyUnit(t, text)
}

// verifyUnit asks systemd itself where it is installed.
func verifyUnit(t *testing.T, text string) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bridge.service")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "/usr/local/bin/bridge ", self+" ")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", file).CombinedOutput(); err != nil || bytes.Contains(out, []byte("bridge.service")) {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	// Exposure counts from 0 to 10; the threshold is in tenths.
	if out, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--threshold=20", file).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}
