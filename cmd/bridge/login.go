package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/mcpbridge/bridge/authorize"
	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
	"github.com/mcpbridge/bridge/upstream/streamable"
)

func newLogin(env surroundings) *cobra.Command {
	var device, paste bool
	cmd := &cobra.Command{
		Use:   "login URL [--device | --paste]",
		Short: "Sign in to a server, for every bridge of yours with --auth.mode agent",
		Long: `login signs you in to a server in your browser and keeps the login for every bridge
that you run with --auth.mode agent. These sign in by themselves when they need to;
login is for doing so beforehand, on machines without a browser, and for changing
the account.`,
		Example: "  bridge login https://mcp.example.com/mcp\n  bridge login --paste https://mcp.example.com/mcp",
		Args:    oneURL,
	}
	settings := addSettings(cmd, env.environ, concernsLogin)
	settings.partly = true
	settings.addConfigFile(cmd)
	cmd.Flags().BoolVar(&device, "device", false, "Show a code to enter on another device")
	cmd.Flags().BoolVar(&paste, "paste", false, "Take the address at which any browser, anywhere, ended up")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if device && paste {
			return usageError{errors.New("--device and --paste are two ways to sign in without a browser here; choose one")}
		}
		m, err := settings.forLogin(args[0])
		if err != nil {
			return err
		}
		if device {
			m.Auth.Grant = "device"
		}
		l := &signingIn{env: env, mount: m}
		return l.run(cmd.Context(), paste)
	}
	return cmd
}

// concernsLogin names the settings that decide how a server is signed in to.
func concernsLogin(key string) bool {
	switch key {
	case "auth.mode", "auth.wait", "auth.share":
		return false
	case "upstream-socket", "timeouts.connect":
		return true
	}
	return strings.HasPrefix(key, "auth.") || strings.HasPrefix(key, "upstream-tls.")
}

// forLogin reads the settings for signing in to a server.
func (s *settingFlags) forLogin(server string) (*config.Mount, error) {
	s.settings = append(s.settings,
		config.Setting{Key: "upstream", Values: []string{server}}, config.Setting{Key: "auth.mode", Values: []string{"agent"}})
	cfg, err := reading(func() (config.Config, error) { return s.load(nil) })
	return &cfg.Mount, asArgument(err)
}

func oneURL(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return usageError{fmt.Errorf("usage: %s URL", cmd.CommandPath())}
}

// signingIn is one run of the command.
type signingIn struct {
	env   surroundings
	mount *config.Mount
}

func (l *signingIn) run(ctx context.Context, paste bool) error {
	options, err := signInOptions(l.mount, zerolog.Nop()) // the command says itself what there is to say
	if err != nil {
		return err
	}
	agent, err := authorize.New(options)
	if err != nil {
		return err
	}
	defer agent.Close()
	challenge, open, err := challengeOf(ctx, l.mount)
	if err != nil {
		return err
	}
	var got *authorize.Login
	if paste {
		got, err = agent.Paste(ctx, challenge, l.tellPaste, l.reading())
	} else {
		got, err = agent.SignIn(ctx, challenge, l.tell)
	}
	if open && errors.Is(err, authorize.ErrNoSignIn) {
		l.say("%s asks for no sign-in: it answers without one, so there is nothing to do.\n", target(l.mount))
		return nil
	}
	if err != nil {
		return err
	}
	l.say("You are signed in to %s%s.\n", target(l.mount), scopesText(got.Granted))
	return nil
}

// challengeOf asks the server what it wants. open reports that it answers anybody; it may want a sign-in for some
// of its tools all the same.
func challengeOf(ctx context.Context, m *config.Mount) (challenge []string, open bool, err error) {
	options, err := upstreamOptions(m, zerolog.Nop())
	if err != nil {
		return nil, false, err
	}
	options.Header.Del("Authorization")
	client, err := streamable.New(options)
	if err != nil {
		return nil, false, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, authorize.RequestTimeout)
	defer cancel()
	_, err = client.Do(ctx, &upstream.Call{Method: mcp.MethodDiscover, Params: translate.OwnParams(mcp.MethodDiscover, nil)}, nil)
	switch failure, ok := errors.AsType[*upstream.Failure](err); {
	case !ok:
		return nil, err == nil, nil
	case failure.Cause == upstream.Unreachable, failure.Cause == upstream.TLS, failure.Cause == upstream.Timeout:
		return nil, false, failure
	default:
		return failure.Challenge, false, nil
	}
}

func (l *signingIn) say(format string, args ...any) {
	_, _ = fmt.Fprintf(l.env.out, format, args...) // to a terminal that may be gone
}

func (l *signingIn) tell(p authorize.Pending) {
	switch {
	case p.Code != "":
		l.say("Open %s on any device and enter the code %s\n", p.URL, p.Code)
	case p.Opened:
		l.say("A page was opened in your browser. If you do not see it, open\n\n  %s\n\n", p.URL)
	default:
		l.say("Open this page in a browser on this machine:\n\n  %s\n\n", p.URL)
		if port := portOf(p.URL); port != "" {
			l.say("If your browser is on another one, connect that first:  ssh -L %s:127.0.0.1:%s THIS-MACHINE\nor run the command again with --paste.\n", port, port)
		}
	}
}

func (l *signingIn) tellPaste(p authorize.Pending) {
	l.say("Open this page in any browser:\n\n  %s\n\nAt the end the browser shows an address on 127.0.0.1, maybe with an error. Paste that address here: ", p.URL)
}

// maxPasted bounds all that is pasted, in bytes.
const maxPasted = 16 << 10

// reading returns what reads the lines that are pasted.
func (l *signingIn) reading() func(wrong error) (string, error) {
	in := bufio.NewReader(io.LimitReader(l.env.in, maxPasted))
	return func(wrong error) (string, error) {
		if wrong != nil {
			l.say("Sorry, %s.\nPaste it here, or press Ctrl-C: ", wrong)
		}
		line, err := in.ReadString('\n')
		switch {
		case strings.TrimSpace(line) != "" || err == nil:
			return line, nil
		case wrong != nil:
			return "", wrong
		}
		return "", errors.New("no address was pasted")
	}
}

// portOf returns the port to which the browser will come back.
func portOf(page string) string {
	u, err := url.Parse(page)
	if err != nil {
		return ""
	}
	back, err := url.Parse(u.Query().Get("redirect_uri"))
	if err != nil {
		return ""
	}
	return back.Port()
}

func scopesText(scopes []string) string {
	if len(scopes) == 0 {
		return ""
	}
	return " (" + strings.Join(scopes, " ") + ")"
}
