package authorize

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/authorize/sealed"
	"github.com/mcpbridge/bridge/internal/clip"
	"github.com/mcpbridge/bridge/internal/http1"
	"github.com/mcpbridge/bridge/internal/wellknown"
)

// Grant is the way in which tokens are got.
type Grant string

// The grants.
const (
	// Auto is Code where there is a browser, and else Device where the
	// authorization server has it.
	Auto Grant = "auto"
	// Code sends the person's browser to the authorization server.
	Code Grant = "code"
	// Device shows a short code to type in on another device (RFC 8628).
	Device Grant = "device"
	// ClientCredentials is for machines, which have an account of their own.
	ClientCredentials Grant = "client-credentials"
	// Enterprise exchanges an ID token of the company's identity provider.
	Enterprise Grant = "enterprise"
	// Exchange is for an Exchanger: each person's token for one of the server.
	Exchange Grant = "exchange"
)

// OmitResource leaves the parameter resource out, for authorization servers that
// refuse it.
const OmitResource = "omit"

// Options says for which server to sign in, and how. Server and Dir are required.
type Options struct {
	// Server is the URL of the MCP endpoint.
	Server string
	// Dir is where logins are kept; it is made with mode 0700.
	Dir string
	// Store is "file", "keyring" or "auto", which is keyring where there is one.
	Store string
	Grant Grant
	// Browser is the command that shows a URL, which it gets as last argument;
	// empty: the system's.
	Browser []string
	// ClientID is the id that the authorization server gave the bridge, or the
	// https URL of a client ID metadata document; empty: the bridge registers.
	ClientID string
	// ClientSecret is shown to Issuer alone, which it needs: a server may name anybody.
	ClientSecret string
	// ClientKey is the private key that proves the client, PEM (private_key_jwt). A proof
	// names who it is for, and is of no use to others.
	ClientKey []byte
	// ClientName is what people read when they are asked for consent.
	ClientName string
	// Issuer is the authorization server to use, required for Exchange and beside
	// ClientSecret; empty: one that the server names.
	Issuer string
	// Scopes are asked for instead of those that the server names.
	Scopes []string
	// Resource stands in for the identifier that the server's metadata names, or
	// is OmitResource.
	Resource string
	// Parameters are added to the authorization request.
	Parameters map[string]string
	// Callback is the URL on this machine to which the browser comes back; empty:
	// one of a few ports that depend on the server.
	Callback string
	// IDToken sends the ID token to the server instead of the access token.
	IDToken bool
	// AssumePKCE uses authorization servers that do not list PKCE with S256. The challenge
	// is sent to them all the same.
	AssumePKCE bool
	// IDP is the company's identity provider, for Enterprise.
	IDP IDP
	// Resources asks the server for its metadata, also where it names another origin for them;
	// Issuers speaks with authorization servers.
	Resources, Issuers *http.Client
	// Keys holds the key of the store; nil: the system's keyring.
	Keys sealed.Keyring
	// Watch is told what came of each step; nil: nobody is. It is called on the way of
	// requests, so it does not block.
	Watch func(Step, Outcome)
	Log   zerolog.Logger
}

// IDP is an identity provider and what it knows the bridge by.
type IDP struct {
	Issuer       string
	ClientID     string
	ClientSecret string
	// TokenFile holds an ID token of the person, which something else keeps fresh.
	TokenFile string
}

// RequestTimeout bounds one request to an authorization server.
const RequestTimeout = 20 * time.Second

func (o *Options) defaults() error {
	server := Address(o.Server)
	if server == "" {
		return fmt.Errorf("the server's URL %q is not valid", o.Server)
	}
	o.Server = server
	if o.ClientSecret != "" && o.Issuer == "" {
		return failf(nil, "auth.client-secret needs auth.issuer, the authorization server that gave it: else it would go to whichever one %s names", o.host())
	}
	o.Grant = cmp.Or(o.Grant, Auto)
	o.Store = cmp.Or(o.Store, "auto")
	o.ClientName = cmp.Or(o.ClientName, "MCP Bridge")
	o.Resources, o.Issuers = careful(o.Resources, wellknown.FollowResource), careful(o.Issuers, wellknown.Follow)
	if o.Keys == nil {
		o.Keys = sealed.System{}
	}
	var err error
	if o.Dir == "" {
		o.Dir, err = DefaultDir()
	}
	return err
}

// Address writes the URL of a server as its logins know it: the same server has one login,
// however people write it. "" is for what is no such URL.
func Address(server string) string {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return ""
	}
	u.Host = strings.ToLower(u.Host)
	for scheme, port := range map[string]string{"http": ":80", "https": ":443"} {
		if u.Scheme == scheme {
			u.Host = strings.TrimSuffix(u.Host, port)
		}
	}
	if u.Path == "/" {
		u.Path = ""
	}
	u.Fragment, u.RawFragment = "", ""
	return u.String()
}

// Shown is the address of a server for people, without a query, which may hold a secret.
func Shown(server string) string {
	if before, _, found := strings.Cut(server, "?"); found {
		return before + "?…"
	}
	return server
}

// careful returns a client that is not led astray; given nil, a new one.
// Where its way is nobody's, it gets one that reads short heads.
func careful(client *http.Client, follow func(*http.Request, []*http.Request) error) *http.Client {
	if client == nil {
		client = &http.Client{Timeout: RequestTimeout}
	}
	own := *client
	own.CheckRedirect = follow
	if own.Transport == nil {
		own.Transport = http1.DefaultTransport()
	}
	return &own
}

// DefaultDir is where logins are kept when nothing else is said.
func DefaultDir() (string, error) {
	base, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("there is no place for logins: %w; set auth.dir", err)
	}
	return filepath.Join(base, "mcp-bridge", "auth"), nil
}

// host names the server in messages.
func (o *Options) host() string { return hostOf(o.Server) }

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "the server"
	}
	return clip.Line(u.Host)
}

// plain writes a URL so that it does in a terminal, and in what it is completed with,
// nothing but be one.
func plain(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.Fragment, u.RawFragment = "", "" // what is added would be lost in it
	return u.String()
}
