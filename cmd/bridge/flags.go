package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcpbridge/bridge/config"
)

// settingFlags collects what the command line sets, under the names of the
// configuration.
type settingFlags struct {
	file     string
	settings []config.Setting
	environ  []string
	partly   bool // the command obeys some settings only
}

// addSettings gives a command one flag per setting that it obeys. Timeouts and
// limits work but are left out of the help, which would be too long to read.
func addSettings(cmd *cobra.Command, environ []string, obeys func(key string) bool) *settingFlags {
	s := &settingFlags{environ: environ}
	flags := cmd.Flags()
	flags.SortFlags = false
	for _, option := range config.Options() {
		if !obeys(option.Key) {
			continue
		}
		flag := flags.VarPF(&optionFlag{option: option, into: s}, option.Key, "", firstSentence(option.Doc))
		flag.Hidden = strings.HasPrefix(option.Key, "timeouts.") || strings.HasPrefix(option.Key, "limits.")
	}
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "header" { // it takes one header at a time, after all
			name = "headers"
		}
		return pflag.NormalizedName(name)
	})
	return s
}

// addConfigFile adds the flag that names the configuration file.
func (s *settingFlags) addConfigFile(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.file, "config", variable(s.environ, "BRIDGE_CONFIG"),
		"A YAML `file` with settings; \"bridge config defaults\" prints one")
}

// load reads the configuration; command is what followed "--".
func (s *settingFlags) load(command []string) (config.Config, error) {
	settings := s.settings
	if len(command) > 0 {
		settings = append(slices.Clone(settings), config.Setting{Key: "command", Values: command})
	}
	return config.Load(config.Sources{File: s.file, Environ: s.environ, Flags: settings, Partly: s.partly})
}

// optionFlag hands the text of one flag to settingFlags.
type optionFlag struct {
	option config.Option
	into   *settingFlags
}

func (f *optionFlag) String() string { return "" }

func (f *optionFlag) Type() string {
	if f.option.List {
		return "value"
	}
	return strings.ReplaceAll(f.option.Form(), ", ", "|")
}

// Set notes a value. Repeating a flag adds to a list and replaces anything else.
func (f *optionFlag) Set(value string) error {
	settings := f.into.settings
	at := slices.IndexFunc(settings, func(s config.Setting) bool { return s.Key == f.option.Key })
	switch {
	case at < 0:
		f.into.settings = append(settings, config.Setting{Key: f.option.Key, Values: []string{value}})
	case f.option.List:
		settings[at].Values = append(settings[at].Values, value)
	default:
		settings[at].Values = []string{value}
	}
	return nil
}

func firstSentence(doc string) string {
	sentence, _, _ := strings.Cut(doc, ". ")
	return strings.TrimSuffix(sentence, ".")
}

// variable returns the value of an environment variable, "" when it is not set.
func variable(environ []string, name string) string {
	for _, entry := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}
