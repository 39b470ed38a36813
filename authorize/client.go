package authorize

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/mcpbridge/bridge/internal/clip"
)

// client is what an authorization server knows the bridge by.
type client struct {
	ID     string `json:"id"`
	Secret string `json:"secret,omitempty"`
	// Method is how it proves itself at the token endpoint (RFC 7591, 2).
	Method string `json:"method,omitempty"`
	// Redirects are the addresses that were registered; nil: not by the bridge.
	Redirects []string `json:"redirects,omitempty"`
	// Expires is when the secret does; zero: never.
	Expires time.Time `json:"expires,omitzero"`
}

// Methods of proving a client (RFC 7591, 2).
const (
	methodNone  = "none"
	methodPost  = "client_secret_post"
	methodBasic = "client_secret_basic"
	methodKey   = "private_key_jwt"
)

// client returns the id to use with an authorization server: the configured one,
// that of the configured document, the one registered before, or a new one, in
// the protocol's order. Clients are bound to their issuer.
func (a *Agent) client(ctx context.Context, at *place, redirects []string) (client, error) {
	if c, ok := a.configured(at.meta); ok {
		return c, nil
	}
	if l := a.login.Load(); l != nil && l.Issuer == at.meta.Issuer && l.Client.serves(redirects) {
		return l.Client, nil
	}
	if at.meta.RegistrationEndpoint == "" {
		return client{}, failf(nil, "%s does not let programs register themselves; ask its operator for a client id, and set it as auth.client-id (the redirect URI is %s)",
			hostOf(at.meta.Issuer), strings.Join(redirects[:min(1, len(redirects))], ""))
	}
	c, err := a.register(ctx, at, redirects)
	a.tell(StepRegistration, err)
	return c, err
}

// configured returns the client that the operator set. A document counts only
// where the authorization server reads documents.
func (a *Agent) configured(meta *metadata) (client, bool) {
	id := a.opt.ClientID
	if id == "" || isDocument(id) && !meta.ClientIDMetadataDocumentSupported {
		return client{}, false
	}
	c := client{ID: id, Secret: a.opt.ClientSecret}
	c.Method = a.method(meta.TokenEndpointAuthMethodsSupported)
	return c, true
}

// isDocument reports whether a client id is the URL of a metadata document.
func isDocument(id string) bool {
	u, err := url.Parse(id)
	return err == nil && u.Scheme == "https" && strings.Trim(u.Path, "/") != ""
}

// method chooses how a configured client proves itself.
func (a *Agent) method(offered []string) string {
	switch {
	case len(a.opt.ClientKey) > 0:
		return methodKey
	case a.opt.ClientSecret == "":
		return methodNone
	case len(offered) == 0 || slices.Contains(offered, methodBasic): // RFC 8414, 2: the default
		return methodBasic
	}
	return methodPost
}

// serves reports whether a registered client still is what is needed.
func (c *client) serves(redirects []string) bool {
	return c.ID != "" && c.Redirects != nil && covers(c.Redirects, redirects) &&
		(c.Expires.IsZero() || time.Now().Before(c.Expires))
}

// style is how the token endpoint gets id and secret.
func (c *client) style() oauth2.AuthStyle {
	if c.Method == methodBasic {
		return oauth2.AuthStyleInHeader
	}
	return oauth2.AuthStyleInParams
}

// register introduces the bridge to an authorization server (RFC 7591). All the
// ports are registered at once, so that a busy one needs no new client.
func (a *Agent) register(ctx context.Context, at *place, redirects []string) (client, error) {
	method := registrable(at.meta.TokenEndpointAuthMethodsSupported)
	grants := []string{"authorization_code", "refresh_token"}
	if at.meta.DeviceEndpoint != "" {
		grants = append(grants, grantDevice)
	}
	reply := &witness{base: a.opt.Issuers.Transport}
	got, err := oauthex.RegisterClient(ctx, at.meta.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
		RedirectURIs: redirects, TokenEndpointAuthMethod: method, GrantTypes: grants, ResponseTypes: []string{"code"},
		ClientName: a.opt.ClientName, ApplicationType: "native", SoftwareID: "mcp-bridge",
	}, a.through(reply))
	switch {
	case err != nil && (reply.status == 0 || reply.status >= 500):
		return client{}, passing(err, "the authorization server %s cannot register the bridge at present; try again later", hostOf(at.meta.Issuer))
	case err != nil:
		var refused oauthex.ClientRegistrationError
		_ = json.Unmarshal(reply.body, &refused) // which may be no JSON: then there is no reason to quote
		if reply.status < 300 {
			return client{}, failf(err, "the authorization server %s registered the bridge, but its answer cannot be used; ask its operator for a client id, and set it as auth.client-id", hostOf(at.meta.Issuer))
		}
		return client{}, failf(err, "the authorization server %s does not register the bridge: %s; ask its operator for a client id, and set it as auth.client-id",
			hostOf(at.meta.Issuer), quote(cmp.Or(refused.ErrorCode, http.StatusText(reply.status)), refused.ErrorDescription))
	}
	if got.TokenEndpointAuthMethod != "" && !slices.Contains(registrableMethods, got.TokenEndpointAuthMethod) {
		return client{}, failf(nil, "the authorization server %s registered the bridge to prove itself by %s, which it cannot; ask its operator for a client id, and set it as auth.client-id",
			hostOf(at.meta.Issuer), clip.Line(got.TokenEndpointAuthMethod))
	}
	return client{
		ID: got.ClientID, Secret: got.ClientSecret, Method: cmp.Or(got.TokenEndpointAuthMethod, method),
		Redirects: redirects, Expires: got.ClientSecretExpiresAt,
	}, nil
}

// registrableMethods are those of a client that registers itself, best first.
var registrableMethods = []string{methodNone, methodBasic, methodPost}

// registrable chooses how a client that is about to register will prove itself: a
// program on people's machines has no secrets to keep, so best not at all.
func registrable(offered []string) string {
	for _, method := range registrableMethods {
		if slices.Contains(offered, method) {
			return method
		}
	}
	if len(offered) == 0 {
		return methodNone
	}
	return methodBasic
}
