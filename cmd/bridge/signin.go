package main

import (
	"fmt"
	"os/exec"
	"strings"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/authorize"
	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/signin"
	"github.com/mcpbridge/bridge/internal/smallfile"
	"github.com/mcpbridge/bridge/observe"
)

// signIn is how a mount's bridge signs in to its server; nil: it does not.
func signIn(m *config.Mount, watch observe.Watcher, log zerolog.Logger) (*signin.Account, error) {
	if !signsIn(&m.Auth) || m.Auth.Grant == "exchange" {
		return nil, nil
	}
	options, err := signInOptions(m, log)
	if err != nil {
		return nil, err
	}
	options.Watch = reported(watch)
	agent, err := authorize.New(options)
	if err != nil {
		return nil, err
	}
	return &signin.Account{Agent: agent, Wait: m.Auth.Wait, Heartbeat: m.Timeouts.Heartbeat}, nil
}

// signsIn reports whether a mount's bridge gets tokens for its server.
func signsIn(auth *config.Auth) bool {
	return auth.Mode == "agent" || auth.Mode == "terminate" && auth.Grant != "auto"
}

// onBehalf is how a mount's bridge acts for clients whose tokens end there; nil: they do
// not, or it signs in with an account of its own.
func onBehalf(m *config.Mount, watch observe.Watcher, log zerolog.Logger) (*signin.Behalf, error) {
	if m.Auth.Mode != "terminate" || m.Auth.Grant != "auto" && m.Auth.Grant != "exchange" {
		return nil, nil
	}
	if m.Auth.Grant == "auto" {
		return &signin.Behalf{}, nil
	}
	options, err := signInOptions(m, log)
	if err != nil {
		return nil, err
	}
	options.Watch = reported(watch)
	exchange, err := authorize.NewExchanger(options)
	return &signin.Behalf{Exchange: exchange}, err
}

// reported has what comes of sign-ins reported; nil: nobody wants to know.
func reported(watch observe.Watcher) func(authorize.Step, authorize.Outcome) {
	if watch == nil {
		return nil
	}
	return func(step authorize.Step, outcome authorize.Outcome) { watch.Authorized(string(step), string(outcome)) }
}

func signInOptions(m *config.Mount, log zerolog.Logger) (authorize.Options, error) {
	auth := &m.Auth
	tlsConfig, err := clientTLS(&m.UpstreamTLS)
	if err != nil {
		return authorize.Options{}, err
	}
	secret, err := secretOf(auth)
	if err != nil {
		return authorize.Options{}, err
	}
	key, err := clientKeyOf(auth)
	if err != nil {
		return authorize.Options{}, err
	}
	return authorize.Options{
		Server: m.Upstream, Dir: auth.Dir, Store: auth.Store, Grant: authorize.Grant(auth.Grant), Browser: browserCommand(auth.Browser),
		ClientID: auth.ClientID, ClientSecret: secret, ClientKey: key, ClientName: auth.ClientName, Issuer: auth.TrustedIssuer(),
		Scopes: auth.Scopes, Resource: auth.Resource, Parameters: auth.Parameters, Callback: auth.Callback, IDToken: auth.Token == "id", AssumePKCE: auth.PKCE == "assumed",
		IDP: authorize.IDP{
			Issuer: auth.IDP.Issuer, ClientID: auth.IDP.ClientID, ClientSecret: auth.IDP.ClientSecret, TokenFile: auth.IDP.TokenFile,
		},
		Resources: resourceClient(m, tlsConfig),
		Issuers:   issuerClient(m, tlsConfig),
		Log:       log,
	}, nil
}

// secretOf returns the client's secret, wherever it is.
func secretOf(auth *config.Auth) (string, error) {
	if auth.ClientSecretFile == "" {
		return auth.ClientSecret, nil
	}
	text, err := smallfile.Secret(auth.ClientSecretFile)
	if err != nil {
		return "", fmt.Errorf("auth.client-secret-file: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", fmt.Errorf("auth.client-secret-file: %s is empty", auth.ClientSecretFile)
	}
	return secret, nil
}

// clientKeyOf returns the key that proves the client, nil without one.
func clientKeyOf(auth *config.Auth) ([]byte, error) {
	if auth.ClientKey == "" {
		return nil, nil
	}
	key, err := smallfile.Secret(auth.ClientKey)
	if err != nil {
		return nil, fmt.Errorf("auth.client-key: %w", err)
	}
	return key, authorize.CheckClientKey(key)
}

// browserCommand splits a command at spaces, unless it is the name of a program.
func browserCommand(text string) []string {
	if _, err := exec.LookPath(text); err == nil {
		return []string{text}
	}
	return strings.Fields(text)
}
