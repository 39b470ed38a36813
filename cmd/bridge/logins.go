package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/authorize"
	"github.com/mcpbridge/bridge/config"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
)

func newLogout(env surroundings) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "logout URL",
		Short:   "End the login of a server, here and at its authorization server",
		Example: "  bridge logout https://mcp.example.com/mcp",
		Args:    oneURL,
	}
	settings := addSettings(cmd, env.environ, concernsLogin)
	settings.partly = true
	settings.addConfigFile(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		m, err := settings.forLogin(args[0])
		if err != nil {
			return err
		}
		options, err := signInOptions(m, zerolog.Nop())
		if err != nil {
			return err
		}
		agent, err := authorize.New(options)
		if err != nil {
			return err
		}
		defer agent.Close()
		had, err := agent.SignOut(cmd.Context())
		untold, here := errors.AsType[*authorize.Failure](err)
		if err != nil && (!here || !untold.Passing) {
			return err
		}
		text := "There was no login of %s.\n"
		if had {
			text = "The login of %s has ended. A bridge that is running may use its token until that expires.\n"
		}
		text = fmt.Sprintf(text, target(m))
		if err != nil {
			text += untold.Error() + ".\n"
		}
		_, err = io.WriteString(cmd.OutOrStdout(), text)
		return err
	}
	return cmd
}

func newAuth(env surroundings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "auth",
		Short: "List the logins that are kept",
		Args:  noArgs,
	}
	settings := addSettings(cmd, env.environ, func(key string) bool { return key == "auth.dir" })
	settings.partly = true
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		dir, err := settings.loginDir()
		if err != nil {
			return err
		}
		logins, err := authorize.List(dir)
		if err != nil {
			return err
		}
		return printLogins(cmd.OutOrStdout(), dir, logins)
	}
	return cmd
}

// loginDir is where logins are, as set.
func (s *settingFlags) loginDir() (string, error) {
	s.settings = append(s.settings, config.Setting{Key: "upstream", Values: []string{"http://localhost/"}}) // which it does not depend on
	cfg, err := reading(func() (config.Config, error) { return s.load(nil) })
	if err != nil || cfg.Auth.Dir != "" {
		return cfg.Auth.Dir, err
	}
	return authorize.DefaultDir()
}

func printLogins(w io.Writer, dir string, logins []authorize.Entry) error {
	var b strings.Builder
	if len(logins) == 0 {
		fmt.Fprintf(&b, "No login is kept in %s.\n", dir)
	}
	for _, l := range logins {
		if l.Problem != "" {
			fmt.Fprintf(&b, "a login that cannot be read\n  %-8s %s\n  %-8s %s; the next request to its server has you sign in again\n", "store", l.File, "problem", l.Problem)
			continue
		}
		fmt.Fprintf(&b, "%s\n  %-8s %s\n  %-8s %s\n  %-8s %s\n  %-8s %s\n", authorize.Shown(l.Server), "issuer", l.Issuer,
			"scopes", orNone(strings.Join(l.Scopes, " ")), "login", lasts(&l, time.Now()), "store", storeText(&l))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// lasts says how long a login does.
func lasts(l *authorize.Entry, now time.Time) string {
	switch {
	case !l.Active:
		return "over; the next request has you sign in again"
	case l.Renews:
		return "renews itself; the present token lasts until " + l.Expires.Local().Format(time.DateTime)
	case l.Expires.IsZero():
		return "until the server refuses it"
	case now.After(l.Expires):
		return "expired; the next request has you sign in again"
	}
	return "until " + l.Expires.Local().Format(time.DateTime)
}

func storeText(l *authorize.Entry) string {
	if l.Sealed {
		return l.File + " (sealed with a key in the keyring)"
	}
	if l.Loose {
		return l.File + " (others on this machine may read it: chmod 600 that file, and sign in again if somebody may have)"
	}
	return l.File + " (readable by you alone)"
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// storedLogin says how long the login of a mount's server lasts, "" without one.
func storedLogin(m *config.Mount) string {
	dir := m.Auth.Dir
	if dir == "" {
		var err error
		if dir, err = authorize.DefaultDir(); err != nil {
			return ""
		}
	}
	logins, err := authorize.List(dir)
	if err != nil {
		return ""
	}
	for _, l := range logins {
		if l.Server == authorize.Address(m.Upstream) {
			return "kept by the bridge for --auth.mode agent: " + lasts(&l, time.Now())
		}
	}
	return ""
}
