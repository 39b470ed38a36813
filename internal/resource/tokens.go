package resource

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/bearer"
	"github.com/mcpbridge/bridge/internal/ttlcache"
)

// identity is what a token says that was found good.
type identity struct {
	principal string
	scopes    []string
	expires   time.Time
	by        signer
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
	log      zerolog.Logger
	good     *ttlcache.Cache[[sha256.Size]byte, *identity]
	keys     *keySet
	close    func()
}

func newTokens(opt *CheckOptions) *tokens {
	t := &tokens{issuer: opt.Issuer, audience: opt.Audience, log: opt.Log,
		good: ttlcache.New[[sha256.Size]byte, *identity](ttlcache.Limits{Entries: keepTokens})}
	t.keys, t.close = opt.Keys.open(trusted{opt.Issuer, opt.Trust}, opt.Issuers, opt.Log)
	return t
}

// judge returns whom the token of an Authorization header stands for.
func (t *tokens) judge(header string) (*identity, *badToken) {
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
	if ok && known.by.version == t.keys.known.Load().version { // else its key may be one that is gone
		return known, nil
	}
	who, bad := t.verify(token)
	if bad != nil {
		return nil, bad
	}
	t.good.Put("", digest, epoch, ttlcache.Item[*identity]{Value: who, TTL: min(keepToken, time.Until(who.expires.Add(skew)))})
	return who, nil
}

func (t *tokens) verify(token string) (*identity, *badToken) {
	kind, signed, by, err := t.keys.open(token)
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
	who, bad := claimSet(said).judge(t.issuer, t.audience, time.Now())
	if bad == nil {
		who.by = by
	}
	return who, bad
}
