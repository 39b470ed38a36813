package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/fleet"
	"github.com/mcpbridge/bridge/legacy"
)

func newStdio(env surroundings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stdio [flags] (--upstream URL | -- COMMAND [ARGUMENT…])",
		Short: "Serve one client over standard input and output",
		Long: `stdio is for clients that launch a command. It speaks with the client over standard
input and output, and ends when the client closes the input: requests that came
before have a second to be answered. Everything it has to say besides goes to
standard error.`,
		Example: "  bridge stdio --upstream https://mcp.example.com/mcp\n  bridge stdio -- my-server --verbose",
		Args:    commandOnly,

		Annotations: map[string]string{takesCommand: "bridge stdio -- my-server"},
	}
	settings := addSettings(cmd, env.environ, concernsStdio)
	settings.addConfigFile(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cfg, err := reading(func() (config.Config, error) { return settings.load(args) })
		if err != nil {
			return err
		}
		return serveStdio(cmd.Context(), &cfg, env)
	}
	return cmd
}

// concernsStdio leaves out the settings of listeners.
func concernsStdio(key string) bool {
	switch key {
	case "command", "listen", "path", "allowed-origins", "allowed-hosts", "session", "park", "heap-floor", "huge-pages":
		return false
	}
	return key == "admin.payloads" || !strings.HasPrefix(key, "tls.") && !strings.HasPrefix(key, "store.") && !strings.HasPrefix(key, "admin.")
}

// giveWhole has a command get the bridge's whole environment where nothing was said of it, and reports
// whether it does: what a person or a client gives its server, it gives the bridge in its place.
func giveWhole(m *config.Mount) bool {
	if len(m.Command) == 0 || len(m.CommandEnv) > 0 {
		return false
	}
	m.CommandEnv = []string{"*"}
	return true
}

func serveStdio(ctx context.Context, cfg *config.Config, env surroundings) error {
	mounts := cfg.Mounts()
	if len(mounts) > 1 {
		return fmt.Errorf("stdio serves one upstream, but the configuration has %d", len(mounts))
	}
	if mounts[0].Auth.Mode == "terminate" {
		return errors.New("auth.mode terminate is for bridge serve: over standard input and output nobody brings a token")
	}
	outliveReaders()
	log := newLogger(env.err, cfg.Log, env.environ)
	giveWhole(&mounts[0])
	admin := newLocalSight(cfg, env.environ, log)
	with := common{admin: admin, pages: newDesks(true, env.environ, log), memory: memory(cfg, log), endless: endless(), sole: true}
	defer with.close()
	how := spec(cfg, mounts[0], with, log)
	m, err := fleet.NewMember(how)
	if err != nil {
		return explained(mountLooks(&mounts[0]), err)
	}
	m.Watch()
	looked := admin.openPrivate(ctx, m, env.environ, log)
	defer looked.close()
	options := legacyOptions(cfg, &mounts[0], how.Log)
	options.Memory = with.memory
	err = legacy.ServeStdio(ctx, env.in, env.out, options, m.Backend)
	m.Close()
	if errors.Is(err, context.Canceled) || errors.Is(err, syscall.EPIPE) {
		return nil // asked to stop, or the client left without closing the input first
	}
	return err
}
