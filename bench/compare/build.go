package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpbridge/bridge/bench/proc"
	"github.com/mcpbridge/bridge/bench/stub"
	"github.com/mcpbridge/bridge/internal/testcert"
)

const bridgePackage = "github.com/mcpbridge/bridge/cmd/bridge"

// controlEnv names the environment variable that the added file reads. It does
// not begin as the bridge's own settings do, because unknown ones are refused.
const controlEnv = "BENCH_CONTROL_LISTEN"

// controlFile is added to the bridge's main package by an overlay, so that
// memory is measured in the very program that users run, wired by its own code,
// and that program still has no such endpoint.
const controlFile = `package main

import (
	"os"

	"github.com/mcpbridge/bridge/bench/control"
)

func init() {
	if _, err := control.Serve(os.Getenv("` + controlEnv + `")); err != nil {
		panic(err)
	}
}
`

// build makes the bridge as users run it, and the bridge with a control
// endpoint.
func (f *fleet) build() error {
	dir, err := os.MkdirTemp("", "bridge-compare-")
	if err != nil {
		return err
	}
	f.dir = dir
	if _, _, _, err := testcert.Make(dir, 1); err != nil {
		return err
	}
	if f.program == "" {
		f.program = filepath.Join(dir, "bridge")
		if err := goBuild(f.program); err != nil {
			return err
		}
	}
	overlay, err := f.overlay()
	if err != nil {
		return err
	}
	f.open = filepath.Join(dir, "bridge-open")
	return goBuild(f.open, "-overlay", overlay)
}

func goBuild(output string, flags ...string) error {
	args := append([]string{"build", "-o", output}, flags...)
	out, err := exec.Command("go", append(args, bridgePackage)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build of the bridge: %w: %.2000s", err, out)
	}
	return nil
}

// overlay writes the added file and the description that the go command wants.
func (f *fleet) overlay() (string, error) {
	source, err := exec.Command("go", "list", "-f", "{{.Dir}}", bridgePackage).Output()
	if err != nil {
		return "", fmt.Errorf("where the bridge's source is: %w", err)
	}
	added := filepath.Join(f.dir, "control.go.txt")
	if err := os.WriteFile(added, []byte(controlFile), 0o600); err != nil {
		return "", err
	}
	place := filepath.Join(strings.TrimSpace(string(source)), "bench_control.go")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{place: added}})
	if err != nil {
		return "", err
	}
	file := filepath.Join(f.dir, "overlay.json")
	return file, os.WriteFile(file, text, 0o600)
}

// maxSessions is the only setting of the bridge that is not the default: the
// default bound is below what the hold mode and the plots open.
const maxSessions = "120000"

// startBridge starts a bridge in front of the modern server.
func (f *fleet) startBridge(open bool, v *variant) (*proc.Process, error) {
	addr, err := proc.FreeAddr()
	if err != nil {
		return nil, err
	}
	args := []string{"serve", "--upstream", f.tls.origin(f.modern) + stub.Path, "--listen", addr, "--path", stub.Path,
		"--limits.sessions", maxSessions}
	args = slices.Concat(args, f.tls.bridgeFlags(f.dir), f.flags, v.flags)
	if !open || v.program != "" {
		return secured(proc.StartAt(v.name, addr, nil, cmp.Or(v.program, f.program), args...))
	}
	at, err := proc.FreeAddr()
	if err != nil {
		return nil, err
	}
	p, err := secured(proc.StartAt(v.name, addr, []string{controlEnv + "=" + at}, f.open, args...))
	if err == nil {
		p.Control = at
	}
	return p, err
}

// secured notes that the bridge, which has one listener, serves TLS there if at all.
func secured(p *proc.Process, err error) (*proc.Process, error) {
	if err == nil {
		p.Secure = p.Addr
	}
	return p, err
}
