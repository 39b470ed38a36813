package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/check"
	"github.com/mcpbridge/bridge/internal/resource"
)

func newCheck(env surroundings) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check [flags] (URL | -- COMMAND [ARGUMENT…])",
		Short: "Look at a server and say what each kind of client will get from it",
		Long: `check asks a server what it is and which tools it has, and prints what the bridge
makes of it. The exit status is 0 when the bridge can use it. It takes every flag of
"bridge stdio", also those that do not matter here, and gives a command the same
environment. With --store.url it looks into a store of sessions, too, as
"bridge config validate" does.`,
		Example: "  bridge check https://mcp.example.com/mcp\n  bridge check --headers 'Authorization: Bearer …' --json https://mcp.example.com/mcp",
		Args:    urlOrCommand,

		Annotations: map[string]string{takesCommand: "bridge check -- my-server"},
	}
	settings := addSettings(cmd, env.environ, func(key string) bool { return concernsCheck(key) || concernsStdio(key) })
	settings.addConfigFile(cmd)
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "config" && !concernsCheck(flag.Name) {
			flag.Hidden = true // it is there for the arguments of `bridge stdio`
		}
	})
	settings.partly = true
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print the report as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cfg, err := reading(func() (config.Config, error) { return settings.load(commandOf(cmd, settings, args)) })
		switch {
		case err != nil && len(args) > 0:
			return ofServer(err)
		case err != nil:
			return err
		}
		return checkServer(cmd, &cfg, asJSON)
	}
	return cmd
}

// checkServer looks at the one server of a configuration, and prints what it finds.
func checkServer(cmd *cobra.Command, cfg *config.Config, asJSON bool) error {
	mounts := cfg.Mounts()
	if len(mounts) > 1 {
		return fmt.Errorf("check looks at one server, but the configuration has %d; give it the URL of one, without the file", len(mounts))
	}
	whole := giveWhole(&mounts[0])
	options, err := checkOptions(&mounts[0])
	if err != nil {
		return err
	}
	options.HTTP.StandardTransport = standardHTTP(cfg)
	r, err := check.Examine(cmd.Context(), options)
	if err != nil {
		return err
	}
	if whole {
		r.Environment = "given as bridge stdio gives it, all but BRIDGE_…; bridge serve gives what --command-env lists"
	}
	r.Store = reportStore(cmd.Context(), cfg.Store)
	return r.Print(cmd.OutOrStdout(), asJSON)
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
	if len(args) > 0 {
		if !cmd.Flags().Changed("config") {
			settings.file = "" // BRIDGE_CONFIG is about the server that `bridge serve` is for
		}
		settings.settings = append(settings.settings, config.Setting{Key: "upstream", Values: args})
	}
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

// ofServer is asArgument where the argument may have been meant as a command.
func ofServer(err error) error {
	err = asArgument(err)
	if bad, ok := errors.AsType[*config.Error](err); ok {
		for i := range bad.Problems {
			if p := &bad.Problems[i]; p.Where == "URL" {
				p.Text += "; a command goes after --, as in `bridge check -- my-server`"
			}
		}
	}
	return err
}

// concernsCheck names the settings that decide how a server is reached, and what
// its clients get.
func concernsCheck(key string) bool {
	switch key {
	case "upstream", "store.url", "store.keys", "headers", "upstream-socket", "auth.dir", "public-url", "profile", "draft", "legacy-relay", "timeouts.connect", "timeouts.discover", "timeouts.start", "command-env",
		"http", "questions", "sampling.provider", "sampling.model", "roots":
		return true
	}
	return strings.HasPrefix(key, "upstream-tls.")
}

func checkOptions(m *config.Mount) (check.Options, error) {
	log := zerolog.Nop() // check keeps one of its own
	opt := check.Options{
		Name: target(m), Draft: draftOptions(m, log), Relay: relayPolicy(m), Profile: profile(m.Profile),
		Instead: instead(&m.Policy),
	}
	opt.First, opt.Setting = firstAnswer(m)
	var err error
	if len(m.Command) > 0 {
		opt.Command = &command(m, log).Stdio
		opt.Command.Tell = true
	} else {
		opt.HTTP, err = upstreamOptions(m, log)
		opt.Login, opt.Public = storedLogin(m), resource.PublicAddress(m.PublicURL, m.Path)
	}
	return opt, err
}
