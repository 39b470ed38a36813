package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/smallfile"
)

func newConfig(env surroundings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show and check the configuration",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConfigDefaults(), newConfigValidate(env), newConfigDocs())
	return cmd
}

func newConfigDefaults() *cobra.Command {
	return &cobra.Command{
		Use:   "defaults",
		Short: "Print a configuration file with every setting, its default and what it is",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), config.RenderDefaults())
			return err
		},
	}
}

func newConfigValidate(env surroundings) *cobra.Command {
	return &cobra.Command{
		Use:   "validate [FILE]",
		Short: "Check a configuration file together with the BRIDGE_… variables",
		Long: `validate reads FILE, or the file that BRIDGE_CONFIG names, the environment, and the
files, directories and the store that they name, and reports everything that is wrong.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			onlyReading.Add(1)
			defer onlyReading.Add(-1)
			file := variable(env.environ, "BRIDGE_CONFIG")
			if len(args) == 1 {
				file = args[0]
			}
			cfg, notes, err := validate(file, env.environ)
			if err != nil {
				return err
			}
			for _, note := range notes {
				fmt.Fprintln(cmd.OutOrStdout(), "note:", note)
			}
			for _, m := range cfg.Mounts() {
				fmt.Fprintf(cmd.OutOrStdout(), "ok: %s%s -> %s\n", cfg.Listen, m.Path, target(&m))
			}
			return nil
		},
	}
}

// validate is config.Load and a look at what serve needs besides, which need not be there
// for every command that reads the configuration.
func validate(file string, environ []string) (cfg config.Config, notes []string, err error) {
	cfg, err = config.Load(config.Sources{File: file, Environ: environ})
	wrong, _ := errors.AsType[*config.Error](err)
	if wrong == nil {
		wrong = new(config.Error)
	}
	storeIsWrong := slices.ContainsFunc(wrong.Problems, func(p config.Problem) bool { return strings.HasPrefix(p.Key, "store.") })
	for _, l := range looks(&cfg, environ) {
		if err := l.at(); err != nil {
			wrong.Problems = append(wrong.Problems, config.Problem{Text: err.Error()})
		}
	}
	if !storeIsWrong {
		if notes, err = checkStore(context.Background(), cfg.Store); err != nil {
			wrong.Problems = append(wrong.Problems, config.Problem{Text: err.Error()})
		}
	}
	switch {
	case len(wrong.Problems) == 0:
		return cfg, slices.Concat(notes, later(&cfg), astray(&cfg), cfg.ProxyNotes()), nil
	case file == "":
		wrong.Problems = append(wrong.Problems, config.Problem{
			Text: "no file was named: give one, like `bridge config validate bridge.yaml`, or set BRIDGE_CONFIG",
		})
	}
	return cfg, nil, wrong
}

// The generated part of docs/configuration.md stands between these lines.
var (
	docsBegin = []byte("<!-- generated: bridge config docs -->\n")
	docsEnd   = []byte("<!-- end of the generated part -->\n")
)

func newConfigDocs() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "docs",
		Short: "Print the table of all settings for the documentation",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				_, err := fmt.Fprint(cmd.OutOrStdout(), config.RenderTable())
				return err
			}
			text, err := smallfile.Read(file)
			if err != nil {
				return err
			}
			if text, err = replaceGenerated(text); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			return os.WriteFile(file, text, 0o644)
		},
	}
	cmd.Flags().StringVar(&file, "write", "", "Replace the generated part of this Markdown `file` instead")
	return cmd
}

func replaceGenerated(text []byte) ([]byte, error) {
	head, rest, begins := bytes.Cut(text, docsBegin)
	_, tail, ends := bytes.Cut(rest, docsEnd)
	if !begins || !ends {
		return nil, errors.New("the lines that enclose the generated part are missing")
	}
	table := []byte(config.RenderTable())
	return bytes.Join([][]byte{head, docsBegin, table, docsEnd, tail}, nil), nil
}
