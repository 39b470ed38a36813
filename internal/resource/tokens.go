package resource

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

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

// tokens judges access tokens that are JSON web tokens (RFC 9068).
type tokens struct {
	issuer   string
	audience []string
	client   *http.Client
	log      zerolog.Logger
	good     *ttlcache.Cache[[sha256.Size]byte, *identity]

	mu    sync.Mutex
	keys  *keySet   // nil until the issuer has been asked
	again time.Time // when to ask it again that could not be asked
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
	keys, err := t.ready(ctx)
	if err != nil {
		return nil, uncheckable
	}
	kind, signed, err := keys.open(ctx, token)
	said := bearer.Claims("Bearer " + token) // nil when a name is there twice
	switch {
	case errors.Is(err, errNoKeys):
		return nil, uncheckable
	case err != nil:
		t.log.Debug().Str("cause", err.Error()).Msg("a client's token was refused")
		return nil, foreign(t.issuer)
	case said == nil || !bytes.Equal(said, signed):
		return nil, foreign(t.issuer)
	case !isAccess(kind):
		return nil, notForAccess
	}
	return claimSet(said).judge(t.issuer, t.audience, time.Now())
}

// ready returns what checks signatures. The issuer is asked when the first token comes,
// and again until it has answered.
func (t *tokens) ready(ctx context.Context) (*keySet, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.keys != nil {
		return t.keys, nil
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
	t.keys = &keySet{at: at, way: t.client.Transport, log: t.log.With().Str("issuer", t.issuer).Logger()}
	return t.keys, nil
}

// keysAt asks the issuer where its keys are.
func (t *tokens) keysAt(ctx context.Context) (string, error) {
	document, err := readIssuer(ctx, t.client, t.issuer)
	if err != nil {
		return "", err
	}
	at := member(document, "jwks_uri")
	if at == "" {
		return "", errors.New("the authorization server publishes no keys (jwks_uri)")
	}
	return at, wellknown.From(t.issuer, at)
}
