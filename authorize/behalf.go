package authorize

import (
	"context"
	"crypto/sha256"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mcpbridge/bridge/internal/bearer"
	"github.com/mcpbridge/bridge/internal/clip"
	"github.com/mcpbridge/bridge/internal/ttlcache"
)

// Exchanger gets tokens of the server for people who brought tokens of their own, one
// for each (RFC 8693). It keeps them in memory only, and is safe for concurrent use.
type Exchanger struct {
	agent *Agent
	cache *ttlcache.Cache[[sha256.Size]byte, string] // headers by those of the people
	under singleflight.Group

	mu    sync.Mutex
	place *place // of the tokens; nil until it is known
	found time.Time
}

const (
	// keptTokens bounds how many people's tokens are remembered.
	keptTokens = 10_000
	// unsaidLife is how long a token is used whose life nobody said.
	unsaidLife = 5 * time.Minute
	// placeLife is how long it is believed where tokens come from.
	placeLife = 10 * time.Minute
)

// NewExchanger returns an Exchanger for the server of the options. It asks nobody yet.
func NewExchanger(opt Options) (*Exchanger, error) {
	opt.Dir, opt.Grant = ".", Exchange // nothing is written there
	if err := opt.defaults(); err != nil {
		return nil, err
	}
	if opt.Issuer == "" {
		return nil, failf(nil, "auth.grant exchange needs auth.issuer or auth.clients.issuer: else clients' tokens would go to whichever authorization server %s names", opt.host())
	}
	if err := CheckClientKey(opt.ClientKey); err != nil {
		return nil, err
	}
	return &Exchanger{agent: &Agent{opt: opt}, cache: ttlcache.New[[sha256.Size]byte, string](ttlcache.Limits{Entries: keptTokens})}, nil
}

// Close frees connections that are not in use.
func (e *Exchanger) Close() {
	e.agent.opt.Resources.CloseIdleConnections()
	e.agent.opt.Issuers.CloseIdleConnections()
}

// Authorization returns the header to send for whoever brought one; "" for nobody. The
// error is a *Failure.
func (e *Exchanger) Authorization(ctx context.Context, brought string) (string, error) {
	token := bearer.Token(brought)
	if token == "" {
		return "", nil
	}
	digest := sha256.Sum256([]byte(brought))
	header, epoch, ok := e.cache.Get("", digest)
	if ok {
		return header, nil
	}
	under := e.under.DoChan(string(digest[:]), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), RequestTimeout) // others may wait for it, too
		defer cancel()
		return e.exchange(ctx, token)
	})
	var got singleflight.Result
	select {
	case got = <-under:
	case <-ctx.Done():
		return "", passing(ctx.Err(), "the authorization server has not given a token for %s yet; nothing was lost, try again in a moment", e.agent.opt.host())
	}
	if got.Err != nil {
		return "", got.Err
	}
	l := got.Val.(*Login)
	life := unsaidLife
	if !l.Renew.IsZero() {
		life = time.Until(l.Renew)
	}
	e.cache.Put("", digest, epoch, ttlcache.Item[string]{Value: l.header(), TTL: life})
	return l.header(), nil
}

// Forget drops a token that the server refused, so that the next one is a new one.
func (e *Exchanger) Forget(brought string) {
	digest := sha256.Sum256([]byte(brought))
	e.cache.Drop(func(key [sha256.Size]byte) bool { return key == digest })
	e.mu.Lock()
	defer e.mu.Unlock()
	if !lately(e.found, again) { // whoever is refused is so as often as he likes
		e.place = nil
	}
}

func (e *Exchanger) exchange(ctx context.Context, subject string) (*Login, error) {
	a := e.agent
	at, err := e.located(ctx)
	if err != nil {
		return nil, err
	}
	c, ok := a.configured(at.meta)
	if !ok {
		return nil, failf(nil, "auth.grant exchange needs auth.client-id, by which %s knows the bridge", hostOf(at.meta.Issuer))
	}
	scopes := at.scopes
	if len(a.opt.Scopes) > 0 {
		scopes = a.opt.Scopes
	}
	params := url.Values{
		"subject_token": {subject}, "subject_token_type": {"urn:ietf:params:oauth:token-type:access_token"},
		"resource": {a.parameter(at.resource)}, "scope": {strings.Join(scopes, " ")},
	}
	for name, value := range a.opt.Parameters {
		params.Set(name, value)
	}
	token, err := a.exchange(ctx, at.meta.TokenEndpoint, at.meta.Issuer, &c, grantExchange, params)
	if err != nil {
		return nil, refusedToken(at.meta.Issuer, err)
	}
	if kind := token.Type(); kind != "Bearer" {
		return nil, failf(nil, "the authorization server %s gave a token of type %s, which the bridge cannot use", hostOf(at.meta.Issuer), clip.Line(kind))
	}
	return a.take(a.newLogin(at, &c, scopes), token)
}

// located says where tokens come from. All who want to know that at the same time ask once.
func (e *Exchanger) located(ctx context.Context) (*place, error) {
	at, err, _ := e.under.Do("place", func() (any, error) {
		e.mu.Lock()
		at := e.place
		if !lately(e.found, placeLife) {
			at = nil
		}
		e.mu.Unlock()
		if at != nil {
			return at, nil
		}
		at, err := e.agent.locate(ctx, &challenge{})
		if err != nil {
			return nil, err
		}
		e.mu.Lock()
		e.place, e.found = at, time.Now()
		e.mu.Unlock()
		return at, nil
	})
	if err != nil {
		return nil, err
	}
	return at.(*place), nil
}
