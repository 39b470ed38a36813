package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcpbridge/bridge/config"
)

func newRoot(env surroundings) *cobra.Command {
	root := &cobra.Command{
		Use:   "bridge",
		Short: "Connect older MCP clients to servers that speak only MCP 2026-07-28",
		Long: `bridge stands between MCP clients of the older revisions (2024-11-05 to
2025-11-25) and servers that speak only 2026-07-28. It gives such a client the
session, the streams and the questions that it expects.

Start with: bridge demo`,
		Args:          noArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(env.in)
	root.SetOut(env.out)
	root.SetErr(env.err)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 100"))
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(wrongFlag)
	root.Version = versionText()
	root.SetVersionTemplate(versionLines())
	root.AddCommand(newServe(env), newStdio(env), newCheck(env), newLogin(env), newLogout(env), newAuth(env), newDemo(env), newPs(env), newWatch(env), newReplay(env), newReport(env), newSessions(env), newConfig(env), newVersion())
	return root
}

// wrongFlag says where the flags are listed, or, of a flag behind a word that may be a command's name, where
// commands go.
func wrongFlag(cmd *cobra.Command, err error) error {
	if cmd.Annotations[takesCommand] != "" && cmd.Flags().NArg() > 0 {
		return usageError{fmt.Errorf("%w; a command and its flags go after --, as in `%s`", err, cmd.Annotations[takesCommand])}
	}
	return usageError{fmt.Errorf("%w; %s`%s --help` lists the flags", err, meantFlag(cmd, err), cmd.CommandPath())}
}

// takesCommand annotates commands of ours behind which a server may be named as a command, with an example.
const takesCommand = "command"

// meantFlag asks for the flag that is nearest to one that there is not.
func meantFlag(cmd *cobra.Command, err error) string {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return ""
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	return meant("--"+unknown.GetSpecifiedName(), names)
}

// meant is config.Suggest in the middle of a sentence.
func meant(name string, candidates []string) string {
	text := strings.TrimPrefix(config.Suggest(name, candidates), "; ")
	if text != "" {
		text += " "
	}
	return text
}

// noArgs refuses arguments with an error that names the likely mistake.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasSubCommands() {
		return usageError{fmt.Errorf("`%s` takes no argument, but got %q", cmd.CommandPath(), args[0])}
	}
	var names []string
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	return usageError{fmt.Errorf("no command %q; %s`%s --help` lists them", args[0], meant(args[0], names), cmd.CommandPath())}
}

// commandOnly accepts arguments only after "--", where they are a command.
func commandOnly(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || cmd.ArgsLenAtDash() == 0 {
		return nil
	}
	return usageError{fmt.Errorf("`%s` takes no argument %q; a URL goes after --upstream, a command after --, as in `%s`", cmd.CommandPath(), args[0], cmd.Annotations[takesCommand])}
}

// urlOrCommand accepts one URL, which a setting may name in its place, or a command after "--".
func urlOrCommand(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case dash < 0 && len(args) == 1 && cmd.Flags().Changed("upstream"):
		return usageError{errors.New("the URL is there twice, as an argument and after --upstream; keep one of the two")}
	case dash == 0 && len(args) > 0, dash < 0 && len(args) <= 1:
		return nil
	}
	return usageError{fmt.Errorf("usage: %s (URL | -- COMMAND [ARGUMENT…])", cmd.CommandPath())}
}
