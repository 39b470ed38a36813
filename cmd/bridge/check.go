package main

import (
	"context"
	"errors"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/check"
	"github.com/mcpbridge/bridge/internal/resource"
)

func newCheck(env surroundings) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check (URL | -- COMMAND [ARGUMENT…])",
		Short: "Look at a server and say what each kind of client will get from it",
		Long: `check asks a server what it is and which tools it has, and prints what the bridge
makes of it. The exit status is 0 when the bridge can use it. With --store.url it looks into
a store of sessions, too, as "bridge config validate" does.`,
		Example: "  bridge check https://mcp.example.com/mcp\n  bridge check --headers 'Authorization: Bearer …' --json https://mcp.example.com/mcp",
		Args:    urlOrCommand,
	}
	settings := addSettings(cmd, env.environ, func(key string) bool {
		return concernsCheck(key) || strings.HasPrefix(key, "upstream-tls.") || key == "store.url" || key == "store.keys"
	})
	settings.partly = true
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print the report as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cfg, err := reading(func() (config.Config, error) { return settings.load(commandOf(cmd, settings, args)) })
		if err != nil {
			return asArgument(err)
		}
		options, err := checkOptions(&cfg.Mount)
		if err != nil {
			return err
		}
		options.HTTP.StandardTransport = standardHTTP(&cfg)
		r, err := check.Examine(cmd.Context(), options)
		if err != nil {
			return err
		}
		r.Store = reportStore(cmd.Context(), cfg.Store)
		return r.Print(cmd.OutOrStdout(), asJSON)
	}
	return cmd
}

// reportStore looks at the store that is named, nil for memory.
func reportStore(ctx context.Context, settings config.Store) *check.Store {
	kind, _, _ := strings.Cut(settings.URL, ":")
	if kind == "memory" {
		return nil
	}
	notes, err := checkStore(ctx, settings)
	r := &check.Store{Kind: kind}
	for _, note := range notes {
		r.Notes = append(r.Notes, strings.TrimPrefix(note, "store: "))
	}
	if err != nil {
		r.Problem = err.Error()
	}
	return r
}

// commandOf returns the command after "--", or notes the URL.
func commandOf(cmd *cobra.Command, settings *settingFlags, args []string) []string {
	if cmd.ArgsLenAtDash() == 0 {
		return args
	}
	settings.settings = append(settings.settings, config.Setting{Key: "upstream", Values: args})
	return nil
}

// asArgument names the URL in an error as the argument that it is to check.
func asArgument(err error) error {
	if bad, ok := errors.AsType[*config.Error](err); ok {
		for i := range bad.Problems {
			if p := &bad.Problems[i]; p.Where == "--upstream" {
				p.Where, p.Key = "URL", ""
			}
		}
	}
	return err
}

// concernsCheck names the settings that decide how a server is reached, and what
// its clients get.
func concernsCheck(key string) bool {
	switch key {
	case "headers", "upstream-socket", "auth.dir", "public-url", "profile", "draft", "legacy-relay", "timeouts.connect", "timeouts.start", "command-env",
		"http", "questions", "sampling.provider", "sampling.model", "roots":
		return true
	}
	return false
}

func checkOptions(m *config.Mount) (check.Options, error) {
	log := zerolog.Nop() // check keeps one of its own
	opt := check.Options{
		Name: target(m), Draft: draftOptions(m, log), Start: m.Timeouts.Start, Relay: relayPolicy(m), Profile: profile(m.Profile),
		Instead: instead(&m.Policy),
	}
	var err error
	if len(m.Command) > 0 {
		opt.Command = &command(m, log).Stdio
	} else {
		opt.HTTP, err = upstreamOptions(m, log)
		opt.Login, opt.Public = storedLogin(m), resource.PublicAddress(m.PublicURL, m.Path)
	}
	return opt, err
}
