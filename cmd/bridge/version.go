package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/mcpbridge/bridge/mcp"
)

// version is set by release builds: -ldflags "-X main.version=v1.2.3".
var version string

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of the bridge and of the protocols it speaks",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), versionLines())
			return err
		},
	}
}

// versionLines is what `bridge version` prints.
func versionLines() string {
	return fmt.Sprintf("bridge %s (%s)\nclients: %v\nservers: %s\n", versionText(), runtime.Version(), mcp.Legacy, mcp.V20260728)
}

// versionText is the release, or what the build knows of its revision.
func versionText() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}

// sourceRevision is what the program was built of, as far as the build knows; "" else.
func sourceRevision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value[:min(len(setting.Value), 12)]
		}
	}
	return ""
}
