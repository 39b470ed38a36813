package config

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Auth is how the bridge signs in to a server over HTTP, as an OAuth client.
type Auth struct {
	// Who signs in to the server: relay leaves that to the clients, agent has the bridge do it for a client that cannot,
	// with the login of one person, who is sent to a browser once. With terminate clients sign in to the bridge, which checks
	// their tokens and has credentials of its own for the server: an Authorization under headers, or what grant says.
	Mode string `key:"mode" oneof:"relay|agent|terminate"`
	// How the bridge gets its tokens: code by the person's browser, device by a code that the person enters on another device,
	// client-credentials with an account of its own, enterprise by an ID token of the company's identity provider, exchange by
	// the token that each client brought, for mode terminate (RFC 8693); auto is code where there is a browser, else device where
	// the server offers that, and with mode terminate none.
	Grant string `key:"grant" oneof:"auto|code|device|client-credentials|enterprise|exchange"`
	// Where logins are kept: file in files that only their owner can read; keyring in files sealed with a key in the system's
	// keyring; auto is keyring where there is one, else file.
	Store string `key:"store" oneof:"auto|file|keyring"`
	// The directory for these files. Empty: mcp-bridge/auth in the person's directory for configuration.
	Dir string `key:"dir"`
	// The command that opens a page; it gets the address as its last argument. Empty: the system's browser.
	Browser string `key:"browser"`
	// The id by which the authorization server knows the bridge, or the https URL of a client ID metadata document. Empty: the
	// bridge registers itself.
	ClientID string `key:"client-id"`
	// The secret that belongs to it; it goes to auth.issuer alone, which it needs. On a command line other users of the machine can read it: better in the file, in
	// BRIDGE_AUTH_CLIENT_SECRET, or in client-secret-file.
	ClientSecret string `key:"client-secret" secret:"true"`
	// A file that holds that secret and nothing else.
	ClientSecretFile string `key:"client-secret-file"`
	// A file with the private key that proves the client instead of a secret, PKCS #8 in PEM (private_key_jwt).
	ClientKey string `key:"client-key"`
	// The name that people read when they are asked for consent.
	ClientName string `key:"client-name"`
	// The authorization server to use, by its issuer: the server may name others, which then get nothing. Empty: the one that
	// the server names, and with grant exchange that of auth.clients.issuer. A client secret needs it.
	Issuer string `key:"issuer"`
	// The scopes to ask for. Empty: those that the server names.
	Scopes []string `key:"scopes" like:"[read, write]"`
	// The identifier of the server in requests for tokens; omit leaves it out, for authorization servers that refuse it.
	// Empty: the one that the server names.
	Resource string `key:"resource"`
	// Parameters added to the request for authorization, as NAME: VALUE, like "audience: https://api.example.com".
	Parameters map[string]string `key:"parameters" secret:"true" like:"{audience: \"https://api.example.com\"}"`
	// The address on this machine to which the browser comes back, as registered for the client id, like
	// http://localhost:3334/callback. Empty: one of four ports that depend on the server.
	Callback string `key:"callback"`
	// Which token the server gets: the access token, or the id token, which few servers want.
	Token string `key:"token" oneof:"access|id"`
	// Whether the authorization server has to list PKCE with S256 in its metadata: assumed uses PKCE all the same with one
	// that does not, as Microsoft Entra and Amazon Cognito have it.
	PKCE string `key:"pkce" oneof:"listed|assumed"`
	// How long a request waits for the person before its client is told where to sign in. It must be shorter than the client's
	// own patience, which with most is a minute.
	Wait time.Duration `key:"wait" min:"1s" max:"10m"`
	// Whether clients on other machines may act with the one login: yes lets a bridge with mode agent listen on more than
	// loopback or a Unix socket, where everyone who can connect has that person's rights.
	Share string `key:"share" oneof:"no|yes"`
	// The company's identity provider, for grant enterprise.
	IDP IDP `key:"idp"`
	// Whose tokens clients must bring, for mode terminate.
	Clients Clients `key:"clients"`
}

// Clients is whose tokens clients must bring to a bridge that checks them.
type Clients struct {
	// The authorization server that gives them, by its issuer. Tokens must be JSON web tokens of its own.
	Issuer string `key:"issuer"`
	// For whom tokens may be. Empty: for the address of the endpoint, as public-url says.
	Audience []string `key:"audience" like:"[https://mcp.example.com/mcp]"`
	// The scopes that a token must have, all of them.
	Scopes []string `key:"scopes" like:"[read, write]"`
}

// IDP is an identity provider.
type IDP struct {
	// Its issuer.
	Issuer string `key:"issuer"`
	// The id by which it knows the bridge.
	ClientID string `key:"client-id"`
	// The secret that belongs to that id; empty: none.
	ClientSecret string `key:"client-secret" secret:"true"`
	// A file that holds the person's ID token, which something else keeps fresh.
	TokenFile string `key:"token-file"`
}

// agent checks a mount whose bridge signs in itself.
func (p *problems) agent(m *Mount, label string) {
	auth := &m.Auth
	if len(m.Command) > 0 {
		p.add(label+"mode", "cannot be agent for a command, which gets its credentials as arguments or environment variables")
	}
	for name := range m.Headers {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			p.add(label+"mode", "cannot be agent beside an Authorization header under headers; remove one of the two")
		}
	}
	if auth.ClientSecret != "" && auth.ClientSecretFile != "" {
		p.add(label+"client-secret-file", "cannot be set beside client-secret; keep one of the two")
	}
	p.grant(auth, label)
	if auth.Callback != "" && !isCallback(auth.Callback) {
		p.add(label+"callback", "%s is no address on this machine; write http://HOST:PORT/PATH with localhost, 127.0.0.1 or [::1] as HOST", shown(auth.Callback))
	}
	p.issuers(auth, label)
}

// issuers checks the addresses of authorization servers.
func (p *problems) issuers(auth *Auth, label string) {
	for _, one := range [...][2]string{{"issuer", auth.Issuer}, {"idp.issuer", auth.IDP.Issuer}, {"clients.issuer", auth.Clients.Issuer}} {
		key, text := one[0], one[1]
		switch u, err := url.Parse(text); {
		case text == "":
		case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.ContainsAny(text, "?#"): // RFC 8414, section 2
			p.add(label+key, "is no issuer; write its URL, like https://login.example.com")
		case hasUser(text):
			p.add(label+key, noUser)
		}
	}
	p.names(label+"resource", auth.Resource)
	p.names(label+"client-id", auth.ClientID)
	p.names(label+"idp.client-id", auth.IDP.ClientID)
	p.names(label+"clients.audience", auth.Clients.Audience...)
}

// noUser is told where a URL is shown to people and sent to others, as nothing but a name.
const noUser = "carries a user name or password, of which there is no use; remove it"

// names checks what may be URLs, and is nothing but names of clients and servers.
func (p *problems) names(key string, list ...string) {
	for _, text := range list {
		if hasUser(text) {
			p.add(key, noUser)
		}
	}
}

// hasUser reports a user name or password in what may be a URL, be it one that cannot be read, or in which the host seems to end within
// the password: me:1/x@b.example. A path may have an @, too, as in https://a.example/@me.
func hasUser(text string) bool {
	scheme, rest, _ := strings.Cut(strings.ToLower(strings.TrimSpace(text)), "://")
	if scheme != "https" && scheme != "http" || !strings.Contains(rest, "@") {
		return false
	}
	u, err := url.Parse(text)
	if err != nil || u.User != nil {
		return true
	}
	named := strings.Contains(u.Host, ".") && !strings.Contains(u.Host, ":") // else it may be a user's name, and how a password begins
	return !named && strings.Contains(strings.ReplaceAll(rest, "/@", "/"), "@")
}

// terminate checks a mount that checks clients' tokens itself.
func (p *problems) terminate(m *Mount, label string) {
	auth := &m.Auth
	if auth.Clients.Issuer == "" {
		p.add(label+"mode", "terminate needs auth.clients.issuer, whose tokens clients bring")
	}
	if m.PublicURL == "" && len(auth.Clients.Audience) == 0 {
		p.add(label+"mode", "terminate needs public-url or auth.clients.audience: for whom clients' tokens are")
	}
	static := false
	for name := range m.Headers {
		static = static || http.CanonicalHeaderKey(name) == "Authorization"
	}
	switch auth.Grant {
	case "auto":
	case "client-credentials", "enterprise", "exchange":
		if static || len(m.Command) > 0 {
			p.add(label+"grant", "%s is of no use for a command, or beside an Authorization header under headers; remove one of the two", auth.Grant)
		}
	default:
		p.add(label+"grant", "%s is the login of one person, which mode terminate does not share; use client-credentials, enterprise or exchange", auth.Grant)
	}
	p.grant(auth, label)
	p.issuers(auth, label)
}

// publicURL checks the address under which clients know the bridge.
func (p *problems) publicURL(text, label string) {
	if text == "" {
		return
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || hasUser(text) || u.RawQuery != "" || u.Fragment != "" {
		p.add(label+"public-url", "is no address of a server; write it like https://mcp.example.com or https://mcp.example.com/mcp")
	}
}

// publicURLs checks that endpoints have addresses of their own.
func (p *problems) publicURLs(mounts []Mount) {
	seen := map[string]string{}
	for _, m := range mounts {
		u, err := url.Parse(m.PublicURL)
		if err != nil || strings.Trim(u.Path, "/") == "" {
			continue
		}
		if first, taken := seen[m.PublicURL]; taken {
			p.add("public-url", "is the address of both %s and %s; write it without a path, or another one for each", first, m.Path)
		}
		seen[m.PublicURL] = m.Path
	}
}

// grant checks that a grant has what it needs.
func (p *problems) grant(auth *Auth, label string) {
	secret := auth.ClientSecret != "" || auth.ClientSecretFile != "" || auth.ClientKey != ""
	switch auth.Grant {
	case "exchange":
		if auth.Mode != "terminate" {
			p.add(label+"grant", "exchange is for mode terminate: there clients bring tokens to exchange")
		}
		if auth.ClientID == "" {
			p.add(label+"grant", "exchange needs auth.client-id, by which the authorization server knows the bridge")
		}
	case "client-credentials":
		if auth.ClientID == "" || !secret {
			p.add(label+"grant", "client-credentials needs auth.client-id, and one of auth.client-secret, auth.client-secret-file and auth.client-key")
		}
	case "enterprise":
		if auth.ClientID == "" || auth.IDP.Issuer == "" || auth.IDP.ClientID == "" || auth.IDP.TokenFile == "" {
			p.add(label+"grant", "enterprise needs auth.client-id, auth.idp.issuer, auth.idp.client-id and auth.idp.token-file")
		}
	}
	p.bound(auth, label)
}

// bound keeps a client's secret from whomever the server may name.
func (p *problems) bound(auth *Auth, label string) {
	key := "client-secret"
	if auth.ClientSecretFile != "" {
		key = "client-secret-file"
	}
	if auth.ClientSecret == "" && auth.ClientSecretFile == "" || auth.TrustedIssuer() != "" {
		return
	}
	p.add(label+key, "needs auth.issuer, the authorization server that gave the secret: without that it would go to whichever one the MCP server names; write its URL, like https://login.example.com")
}

// TrustedIssuer is the only authorization server that gets secrets, "" where the operator
// named none: an exchange is by default with the one that gave clients their tokens.
func (a *Auth) TrustedIssuer() string {
	if a.Issuer == "" && a.Mode == "terminate" && a.Grant == "exchange" {
		return a.Clients.Issuer
	}
	return a.Issuer
}

func isCallback(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "http" && isLoopback(u.Hostname()) && u.User == nil && u.Port() != "" && u.Path != "" && u.RawQuery == ""
}

// sharing refuses to give one person's login to whoever can reach the listener, be it through that
// person's browser.
func (p *problems) sharing(m *Mount, c *Config, label string) {
	if m.Auth.Mode != "agent" || m.Auth.Share == "yes" {
		return
	}
	host, _, err := net.SplitHostPort(c.Listen)
	switch {
	case err == nil && !isLoopback(host) && !strings.HasPrefix(c.Listen, "unix:"): // what is wrong with the address is told elsewhere
		p.add(label+"auth.mode", "agent would give your login to everyone who can reach %s; listen on loopback or a Unix socket, or set auth.share to yes", shown(c.Listen))
	case slices.Contains(c.AllowedOrigins, "*"):
		p.add(label+"auth.mode", "agent would give your login to every web page that a browser opens, since allowed-origins has *; name the origins that may act as you, or set auth.share to yes")
	}
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
