package resource

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/bearer"
	"github.com/mcpbridge/bridge/internal/ttlcache"
	"github.com/mcpbridge/bridge/internal/wellknown"
)

// identity is what a token says that was found good.
type identity struct {
	principal string
	scopes    []string
	expires   time.Time
}

// has reports whether all scopes are among those of the token.
func (i *identity) has(scopes []string) bool {
	return !slices.ContainsFunc(scopes, func(s string) bool { return !slices.Contains(i.scopes, s) })
}

// badToken says why a token will not do. The text is for its client, and holds
// nothing of the token.
type badToken struct {
	text        string // "": there is no token
	unavailable bool   // nobody can tell at present
}

var uncheckable = &badToken{text: "tokens cannot be checked at present; try again later", unavailable: true}

const (
	// skew is how far the issuer's clock may be off.
	skew = time.Minute
	// keepTokens bounds how many tokens are remembered as good, keepToken for how long:
	// their signatures need not be computed again for each request.
	keepTokens = 10_000
	keepToken  = time.Minute
	// maxToken bounds a token, in bytes.
	maxToken = 16 << 10
)

// algorithms are those of signatures that everybody can check.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA,
}

// tokens judges access tokens that are JSON web tokens (RFC 9068).
type tokens struct {
	issuer   string
	audience []string
	client   *http.Client
	log      zerolog.Logger
	good     *ttlcache.Cache[[sha256.Size]byte, *identity]

	mu       sync.Mutex
	verifier *oidc.IDTokenVerifier // nil until the issuer has been asked
	again    time.Time             // when to ask it again that could not be asked
}

func newTokens(opt *CheckOptions) *tokens {
	return &tokens{issuer: opt.Issuer, audience: opt.Audience, client: opt.Issuers, log: opt.Log,
		good: ttlcache.New[[sha256.Size]byte, *identity](ttlcache.Limits{Entries: keepTokens})}
}

// judge returns whom the token of an Authorization header stands for.
func (t *tokens) judge(ctx context.Context, header string) (*identity, *badToken) {
	scheme, brought, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") || strings.TrimSpace(brought) == "" {
		return nil, &badToken{}
	}
	if len(brought) > maxToken {
		return nil, &badToken{text: "the token is too long"}
	}
	token := bearer.Token(header) // what verifies it would pass over white space
	if strings.Count(token, ".") != 2 {
		return nil, &badToken{text: "the token is no JSON web token, and others cannot be checked"}
	}
	digest := sha256.Sum256([]byte(token))
	known, epoch, ok := t.good.Get("", digest)
	if ok {
		return known, nil
	}
	who, bad := t.verify(ctx, token)
	if bad != nil {
		return nil, bad
	}
	t.good.Put("", digest, epoch, ttlcache.Item[*identity]{Value: who, TTL: min(keepToken, time.Until(who.expires.Add(skew)))})
	return who, nil
}

func (t *tokens) verify(ctx context.Context, token string) (*identity, *badToken) {
	verifier, err := t.ready(ctx)
	if err != nil {
		return nil, uncheckable
	}
	read, err := verifier.Verify(ctx, token)
	if err != nil {
		if strings.Contains(err.Error(), "fetching keys ") { // which has no type either
			return nil, uncheckable
		}
		return nil, &badToken{text: t.word(err)}
	}
	if !slices.ContainsFunc(read.Audience, func(a string) bool { return slices.Contains(t.audience, a) }) {
		return nil, &badToken{text: "the token is for somebody else"}
	}
	if read.Subject == "" {
		return nil, &badToken{text: "the token names no subject"}
	}
	sum := sha256.Sum256([]byte(read.Issuer + "\x00" + read.Subject))
	return &identity{principal: base64.RawURLEncoding.EncodeToString(sum[:18]), scopes: scopesOf(read), expires: read.Expiry}, nil
}

// word says why a token is not good, in words of our own: the library quotes claims.
func (t *tokens) word(err error) string {
	if expired := (*oidc.TokenExpiredError)(nil); errors.As(err, &expired) {
		return "the token has expired"
	}
	if strings.Contains(err.Error(), "(not before)") { // which has no type
		return "the token is not good yet; is the clock right?"
	}
	t.log.Debug().Str("cause", wellknown.Reason(err)).Msg("a client's token was refused")
	return "the token is not one of " + t.issuer + ", or is damaged"
}

// scopesOf reads the scopes of a token, under both of the names that issuers use.
func scopesOf(token *oidc.IDToken) []string {
	var claims struct {
		Scope string
		Scp   json.RawMessage
	}
	if token.Claims(&claims) != nil {
		return nil
	}
	scopes := strings.Fields(claims.Scope)
	var list []string
	if json.Unmarshal(claims.Scp, &list) == nil {
		return append(scopes, list...)
	}
	return append(scopes, strings.Fields(text(claims.Scp))...)
}

// ready returns what checks signatures. The issuer is asked when the first token comes,
// and again until it has answered.
func (t *tokens) ready(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.verifier != nil {
		return t.verifier, nil
	}
	if time.Now().Before(t.again) {
		return nil, errors.New("the authorization server could not be asked a moment ago")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	at, err := t.keysAt(ctx)
	if err != nil {
		t.again = time.Now().Add(keepFailure)
		t.log.Warn().Err(err).Str("issuer", t.issuer).Msg("clients' tokens cannot be checked")
		return nil, err
	}
	keys := &sparing{base: t.client.Transport, log: t.log.With().Str("issuer", t.issuer).Logger()}
	client := &http.Client{Transport: keys, Timeout: readTimeout}
	set := oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), client), at)
	t.verifier = oidc.NewVerifier(t.issuer, set, &oidc.Config{
		SkipClientIDCheck:    true, // audiences are compared with ours
		SupportedSigningAlgs: algorithms,
		Now:                  func() time.Time { return time.Now().Add(-skew) },
	})
	return t.verifier, nil
}

// keysAt asks the issuer where its keys are.
func (t *tokens) keysAt(ctx context.Context) (string, error) {
	document, err := readIssuer(ctx, t.client, t.issuer)
	if err != nil {
		return "", err
	}
	var says struct {
		Keys string `json:"jwks_uri"`
	}
	if document == nil || json.Unmarshal(document, &says) != nil || says.Keys == "" {
		return "", errors.New("the authorization server publishes no keys (jwks_uri)")
	}
	return says.Keys, wellknown.From(t.issuer, says.Keys)
}

// sparing is a transport for one document, which it asks for once in a while only:
// tokens under keys that nobody knows must not make the bridge ask all the time.
type sparing struct {
	base http.RoundTripper
	log  zerolog.Logger

	mu    sync.Mutex
	body  []byte
	err   error
	until time.Time
}

// keysEvery is how often new keys are looked for.
const keysEvery = 10 * time.Second

// RoundTrip implements http.RoundTripper.
func (s *sparing) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !time.Now().Before(s.until) {
		s.body, s.err = s.fetch(r)
		s.until = time.Now().Add(keysEvery)
		if s.err != nil {
			s.log.Warn().Err(s.err).Msg("the authorization server's keys cannot be had; tokens are checked with those that are known, if any")
		}
	}
	if s.err != nil {
		return nil, s.err
	}
	return &http.Response{StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		ContentLength: int64(len(s.body)), Body: io.NopCloser(bytes.NewReader(s.body))}, nil
}

func (s *sparing) fetch(r *http.Request) ([]byte, error) {
	resp, err := s.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New("the authorization server does not give its keys: " + resp.Status)
	}
	document, err := io.ReadAll(io.LimitReader(resp.Body, wellknown.MaxDocument))
	if err == nil && !hasKeys(document) {
		err = errors.New("what the authorization server gives holds no key that signatures are checked with")
	}
	return document, err
}

// hasKeys reports whether a document is a set with a key that may be used here. Else it would
// take the place of the keys that are known.
func hasKeys(document []byte) bool {
	var set struct {
		Keys []struct{ Kty, Alg string }
	}
	if json.Unmarshal(document, &set) != nil {
		return false
	}
	for _, key := range set.Keys {
		if slices.Contains([]string{"RSA", "EC", "OKP"}, key.Kty) && (key.Alg == "" || slices.Contains(algorithms, key.Alg)) {
			return true
		}
	}
	return false
}
