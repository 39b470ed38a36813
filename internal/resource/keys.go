package resource

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/wellknown"
	"github.com/mcpbridge/bridge/rawjson"
)

// algorithms are those of signatures that everybody can check.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.ES256, jose.ES384, jose.ES512, jose.PS256, jose.PS384, jose.PS512, jose.EdDSA,
}

// keySet has the keys of an issuer. It asks for them once in a while only: tokens under keys
// that nobody knows must not make the bridge ask all the time. Those that are known stay while
// there are no others.
type keySet struct {
	at    string
	way   http.RoundTripper
	log   zerolog.Logger
	known atomic.Pointer[[]jose.JSONWebKey]

	mu    sync.Mutex // while they are asked for
	err   error
	until time.Time
}

// keysEvery is how often new keys are looked for.
const keysEvery = 10 * time.Second

// Why a signature counts for nothing.
var (
	errNoKeys    = errors.New("the keys cannot be had")
	errSignature = errors.New("no key of the issuer has signed it")
)

// open returns the kind that a token says it is of (typ), and what its signature is for.
// The error is errNoKeys when nobody can tell.
func (k *keySet) open(ctx context.Context, token string) (kind string, payload []byte, err error) {
	signed, err := jose.ParseSignedCompact(token, algorithms)
	if err != nil {
		return "", nil, err
	}
	kind, _ = signed.Signatures[0].Protected.ExtraHeaders[jose.HeaderType].(string)
	if known := k.known.Load(); known != nil {
		if payload = opened(signed, *known); payload != nil {
			return kind, payload, nil
		}
	}
	if err = k.ask(ctx); err != nil {
		return "", nil, errNoKeys
	}
	if payload = opened(signed, *k.known.Load()); payload == nil {
		return "", nil, errSignature
	}
	return kind, payload, nil
}

// opened returns what one of these keys has signed, nil: none has. A key that is for one
// algorithm checks no other one (RFC 7517, section 4.4).
func opened(signed *jose.JSONWebSignature, keys []jose.JSONWebKey) []byte {
	head := signed.Signatures[0].Protected
	for i := range keys {
		key := &keys[i]
		if head.KeyID != "" && head.KeyID != key.KeyID || key.Algorithm != "" && key.Algorithm != head.Algorithm {
			continue
		}
		if payload, err := signed.Verify(key); err == nil {
			return payload
		}
	}
	return nil
}

// ask looks for newer keys, unless that was done a moment ago.
func (k *keySet) ask(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Now().Before(k.until) {
		return k.err
	}
	keys, err := k.fetch(ctx)
	k.err, k.until = err, time.Now().Add(keysEvery)
	if err != nil {
		k.log.Warn().Str("cause", wellknown.Reason(err)).Msg("the authorization server's keys cannot be had; tokens are checked with those that are known, if any")
		return err
	}
	k.known.Store(&keys)
	return nil
}

func (k *keySet) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout) // the answer serves others, too
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, k.at, nil)
	if err != nil {
		return nil, err
	}
	resp, err := k.way.RoundTrip(r) // and follows no redirect
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New("the authorization server does not give its keys: " + resp.Status)
	}
	document, err := io.ReadAll(io.LimitReader(resp.Body, wellknown.MaxDocument))
	if err != nil {
		return nil, err
	}
	keys := keysOf(document)
	if len(keys) == 0 {
		return nil, errors.New("what the authorization server gives holds no key that signatures are checked with")
	}
	return keys, nil
}

// keysOf returns the keys of a document that may be used here. Others are left out (RFC
// 7517, section 5); a document without any is no set of keys.
func keysOf(document []byte) (keys []jose.JSONWebKey) {
	if rawjson.Validate(document) != nil || rawjson.KindOf(document) != rawjson.Object {
		return nil
	}
	for member := range rawjson.Elements(rawjson.Get(document, "keys")) {
		var key jose.JSONWebKey
		if rawjson.KindOf(member) == rawjson.Object && checks(member) && key.UnmarshalJSON(member) == nil && key.IsPublic() && key.Valid() {
			keys = append(keys, key)
		}
	}
	return keys
}

// checks reports whether a key may check signatures (RFC 7517, sections 4.1 to 4.4).
func checks(key []byte) bool {
	kind, use := member(key, "kty"), rawjson.Get(key, "use")
	alg, operations := rawjson.Get(key, "alg"), rawjson.Get(key, "key_ops")
	return slices.Contains([]string{"RSA", "EC", "OKP"}, kind) &&
		(isNothing(use) || member(key, "use") == "sig") &&
		(isNothing(alg) || slices.Contains(algorithms, jose.SignatureAlgorithm(member(key, "alg")))) &&
		(isNothing(operations) || slices.Contains(texts(operations), "verify"))
}
