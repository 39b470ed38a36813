package authorize

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/mcpbridge/bridge/internal/clip"
)

// pending is a sign-in between the moment when the browser left and the one when
// it comes back. It is a file, so that any process can finish it.
type pending struct {
	Issuer    string    `json:"issuer"`
	NamesSelf bool      `json:"namesSelf"` // the issuer says who it is in its answer (RFC 9207)
	Resource  string    `json:"resource"`
	Redirect  string    `json:"redirect"`
	Scopes    []string  `json:"scopes,omitempty"`
	Began     time.Time `json:"began"`

	TokenEndpoint string `json:"tokenEndpoint"`
	Revocation    string `json:"revocation,omitempty"`

	pendingSecrets `json:"-"`
}

type pendingSecrets struct {
	Client   client `json:"client"`
	State    string `json:"state"`
	Verifier string `json:"verifier"`
	URL      string `json:"url"` // holds the state
}

// signInLife is how long a person may take to sign in.
const signInLife = 10 * time.Minute

// begin makes a sign-in. The issuer is recorded before the browser leaves.
func (a *Agent) begin(at *place, c *client, redirect string, scopes []string) *pending {
	p := &pending{
		Issuer: at.meta.Issuer, NamesSelf: at.meta.AuthorizationResponseIssParameterSupported, Resource: at.resource,
		Redirect: redirect, Scopes: scopes, Began: time.Now().Round(0),
		TokenEndpoint: at.meta.TokenEndpoint, Revocation: at.meta.RevocationEndpoint,
		pendingSecrets: pendingSecrets{Client: *c, State: rand.Text(), Verifier: oauth2.GenerateVerifier()},
	}
	request := oauth2.Config{
		ClientID: c.ID, RedirectURL: redirect, Scopes: scopes, Endpoint: oauth2.Endpoint{AuthURL: at.meta.AuthorizationEndpoint},
	}
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(p.Verifier)}
	if resource := a.parameter(at.resource); resource != "" {
		options = append(options, oauth2.SetAuthURLParam("resource", resource))
	}
	for name, value := range a.opt.Parameters {
		options = append(options, oauth2.SetAuthURLParam(name, value))
	}
	p.URL = request.AuthCodeURL(p.State, options...)
	return p
}

// told is what to tell the person about a sign-in.
func (p *pending) told(opened bool) Pending { return Pending{URL: p.URL, Opened: opened} }

// name is that of the file of the sign-in with a state.
func (s *store) pendingName(state string) string {
	return key(s.server) + "-" + digest("state "+state) + pendingFile
}

// keepPending makes a sign-in known to all processes, and drops those that came
// to nothing.
func (s *store) keepPending(p *pending) error {
	s.eachPending(func(name string, old *pending) {
		if !lately(old.Began, signInLife) {
			_ = os.Remove(s.Path(name)) // another process may have done so
		}
	})
	return s.keep(s.pendingName(p.State), "pending", p, p.pendingSecrets)
}

// eachPending calls f with every sign-in of the server that can be read.
func (s *store) eachPending(f func(name string, p *pending)) {
	names, err := s.Names(key(s.server), pendingFile)
	if err != nil {
		return
	}
	for _, name := range names {
		p := &pending{}
		if s.Read(name, p, &p.pendingSecrets) == nil {
			f(name, p)
		}
	}
}

// newestPending returns the sign-in that began last and can still be finished,
// nil without one.
func (s *store) newestPending() (newest *pending) {
	s.eachPending(func(_ string, p *pending) {
		if s.counts(p.Issuer) && lately(p.Began, signInLife-time.Minute) && (newest == nil || p.Began.After(newest.Began)) {
			newest = p
		}
	})
	return newest
}

// pendingOf returns the sign-in with a state, nil if there is none.
func (s *store) pendingOf(state string) *pending {
	p := &pending{}
	if state == "" || s.Read(s.pendingName(state), p, &p.pendingSecrets) != nil {
		return nil
	}
	if subtle.ConstantTimeCompare([]byte(p.State), []byte(state)) != 1 || !lately(p.Began, signInLife) || !s.counts(p.Issuer) {
		return nil
	}
	return p
}

// errForeign is about an answer to a question that nobody here asked. It ends
// nothing: any page in the browser can call the callback.
var errForeign = failf(nil, "this sign-in is not known here, or took too long; go back to your application and try again")

// complete finishes a sign-in with what the browser came back with.
func (a *Agent) complete(ctx context.Context, answer url.Values) (*Login, error) {
	p := a.store.pendingOf(answer.Get("state"))
	if p == nil {
		return nil, errForeign
	}
	if !a.store.claim(p) {
		return nil, errForeign
	}
	if err := p.judge(answer); err != nil {
		return nil, err
	}
	token, err := a.exchange(ctx, p.TokenEndpoint, p.Issuer, &p.Client, grantCode, url.Values{
		"code": {answer.Get("code")}, "redirect_uri": {p.Redirect}, "code_verifier": {p.Verifier}, "resource": {a.parameter(p.Resource)},
	})
	if err != nil {
		if code := codeOf(err); code == "invalid_client" || code == "unauthorized_client" {
			a.forgetClient(ctx, p.Issuer)
		}
		return nil, refusedToken(p.Issuer, err)
	}
	l, err := a.take(Login{
		Resource: p.Resource, Issuer: p.Issuer, Requested: p.Scopes, TokenEndpoint: p.TokenEndpoint, Revocation: p.Revocation,
		secrets: secrets{Client: p.Client},
	}, token)
	if err != nil {
		return nil, err
	}
	return l, a.finish(ctx, l)
}

// judge looks at what the browser came back with (RFC 9207, 2.4). Who speaks is
// settled before anything that is said is believed, or shown.
func (p *pending) judge(answer url.Values) error {
	issuer, present := answer.Get("iss"), answer.Has("iss")
	switch {
	case present && issuer != p.Issuer:
		return failf(nil, "the answer to the sign-in came from %s instead of %s: it was not used, since somebody may have tried to take your sign-in", clip.Line(issuer), clip.Line(p.Issuer))
	case !present && p.NamesSelf:
		return failf(nil, "the answer to the sign-in does not say that it comes from %s, as that server always does: it was not used", clip.Line(p.Issuer))
	}
	if code := answer.Get("error"); code != "" {
		if code == "access_denied" {
			return failf(nil, "the sign-in at %s was declined; try again if that was not meant", hostOf(p.Issuer))
		}
		return failf(nil, "the sign-in at %s failed: %s", hostOf(p.Issuer), quote(code, answer.Get("error_description")))
	}
	if answer.Get("code") == "" {
		return failf(nil, "the answer to the sign-in at %s holds no code; try again", hostOf(p.Issuer))
	}
	return nil
}

// finish keeps a login that a person got, and drops the sign-ins that led to it.
func (a *Agent) finish(ctx context.Context, l *Login) error {
	unlock, err := a.store.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	l.SignedIn = l.Updated
	if err := a.store.save(l); err != nil {
		return err
	}
	a.store.eachPending(func(name string, _ *pending) { _ = os.Remove(a.store.Path(name)) })
	a.adopt(l)
	return nil
}

// claim takes a sign-in out of the world for the one answer that may finish it. A code is
// good for one use: authorization servers take a second one for theft, and revoke what
// came of the first (RFC 6749, 4.1.2).
func (s *store) claim(p *pending) bool { return os.Remove(s.Path(s.pendingName(p.State))) == nil }

// forgetClient drops a registration that the authorization server does not know
// any more, so that the next sign-in registers anew.
func (a *Agent) forgetClient(ctx context.Context, issuer string) {
	unlock, err := a.store.lock(ctx)
	if err != nil {
		return
	}
	defer unlock()
	if l, err := a.store.load(); err == nil && l != nil && l.Issuer == issuer {
		l = l.bare(false)
		if a.store.save(l) == nil {
			a.login.Store(l)
		}
	}
}

// pasted reads the address that the browser was sent to.
func pasted(text string) (url.Values, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.RawQuery == "" {
		return nil, failf(err, "that is not the address that the browser showed at the end; it begins with http:// and holds code= and state=")
	}
	return u.Query(), nil
}
