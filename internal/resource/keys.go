package resource

import (
	"bytes"
	"context"
	"crypto"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
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

// keySet has the keys of an issuer. They are read again in the background from time to time, so that
// one that the issuer has withdrawn is good no more, and when a token comes under another one, which
// is done once in a while only: tokens under keys that nobody knows must not make the bridge ask all
// the time. Those that are known stay while there are no others.
type keySet struct {
	issuer string
	client *http.Client
	log    zerolog.Logger
	known  atomic.Pointer[published]
	ctx    context.Context // ends with the last endpoint that wants them
	stop   context.CancelFunc

	mu    sync.Mutex // while they are asked for
	at    string     // where they are; "" until the issuer has said so
	err   error
	until time.Time   // when a token may have them read again
	next  *time.Timer // to read them again; nil until they are known
}

// published is what an issuer gives as its keys.
type published struct {
	version  uint64 // of what was published one after the other, from 1 on
	document []byte // up to wellknown.MaxDocument
	keys     []jose.JSONWebKey
}

// signer is by what a token was found good: enough to tell whether it is so still, and nothing that keeps what was published
// then in memory, for as long as something lasts.
type signer struct {
	version       uint64 // of what was published then
	id, algorithm string // as the token names the key; id may be ""
	key           publicKey
}

// publicKey is what public keys are, all those of signatures in the standard library.
type publicKey interface{ Equal(crypto.PublicKey) bool }

// When keys are read: keysEvery is how often tokens under unknown ones have new ones looked for. In the
// background it is when the issuer's Cache-Control says, within bounds, and sooner when that failed.
const (
	keysEvery     = 10 * time.Second
	keysAtLeast   = 5 * time.Minute
	keysAtMost    = time.Hour
	keysAfterFail = time.Minute
)

// Why a signature counts for nothing.
var (
	errNoKeys    = errors.New("the keys cannot be had")
	errSignature = errors.New("no key of the issuer has signed it")
)

// has reports whether a token by this signer is good by these keys, however they are described by now.
func (p *published) has(by *signer) bool {
	return slices.ContainsFunc(p.keys, func(k jose.JSONWebKey) bool { return mayCheck(&k, by.id, by.algorithm) && by.key.Equal(k.Key) })
}

// mayCheck reports whether a key may check a token that names these: one that is for one algorithm checks no
// other one (RFC 7517, section 4.4).
func mayCheck(key *jose.JSONWebKey, id, algorithm string) bool {
	return (id == "" || id == key.KeyID) && (key.Algorithm == "" || key.Algorithm == algorithm)
}

// open returns the kind that a token says it is of (typ), what its signature is for, and whose that is.
// The error is errNoKeys when nobody can tell.
func (k *keySet) open(token string) (kind string, payload []byte, by signer, err error) {
	signed, err := jose.ParseSignedCompact(token, algorithms)
	if err != nil {
		return "", nil, by, err
	}
	kind, _ = signed.Signatures[0].Protected.ExtraHeaders[jose.HeaderType].(string)
	if known := k.known.Load(); known != nil {
		if payload, by = known.opened(signed); payload != nil {
			return kind, payload, by, nil
		}
	}
	if err = k.ask(); err != nil {
		return "", nil, by, errNoKeys
	}
	known := k.known.Load()
	if known == nil {
		return "", nil, by, errNoKeys
	}
	if payload, by = known.opened(signed); payload == nil {
		return "", nil, by, errSignature
	}
	return kind, payload, by, nil
}

// opened returns what one of these keys has signed; nil: none has.
func (p *published) opened(signed *jose.JSONWebSignature) (payload []byte, by signer) {
	head := signed.Signatures[0].Protected
	for i := range p.keys {
		key := &p.keys[i]
		public, ok := key.Key.(publicKey)
		if !ok || !mayCheck(key, head.KeyID, head.Algorithm) {
			continue
		}
		if payload, err := signed.Verify(key); err == nil {
			return payload, signer{p.version, head.KeyID, head.Algorithm, public}
		}
	}
	return nil, signer{}
}

// ask looks for newer keys, unless that was done a moment ago. The answer serves others, too, so that it
// is not the request's that asks.
func (k *keySet) ask() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Now().Before(k.until) {
		return k.err
	}
	if k.at == "" {
		if err := k.locateLocked(); err != nil {
			k.err, k.until = err, time.Now().Add(keepFailure)
			k.log.Warn().Err(err).Msg("clients' tokens cannot be checked")
			return err
		}
	}
	return k.readLocked()
}

// renew looks for newer keys in the background, and whether they are where they were. Tokens under
// those that are known do not wait for it.
func (k *keySet) renew() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ctx.Err() != nil {
		return
	}
	_ = k.locateLocked() // else they are read where they were
	_ = k.readLocked()   // which says so
}

// readLocked reads the keys where they are, and has them read again in time.
func (k *keySet) readLocked() error {
	document, life, err := k.fetch()
	keys := keysOf(document)
	if ended := k.ctx.Err(); ended != nil { // nobody wants them any more
		k.err, k.until = ended, time.Now().Add(keysEvery)
		return ended
	}
	if err == nil && len(keys) == 0 {
		err = errors.New("what the authorization server gives holds no key that signatures are checked with")
	}
	k.err, k.until = err, time.Now().Add(keysEvery)
	known := k.known.Load()
	switch {
	case err != nil:
		k.log.Warn().Str("cause", wellknown.Reason(err)).Msg("the authorization server's keys cannot be had; tokens are checked with those that are known, if any")
		life = keysAfterFail
	case known == nil:
		k.known.Store(&published{1, document, keys})
	case !bytes.Equal(known.document, document): // else what was found good is so still
		k.known.Store(&published{known.version + 1, document, keys})
	}
	if k.known.Load() != nil {
		k.renewLocked(life)
	}
	return err
}

func (k *keySet) renewLocked(after time.Duration) {
	switch {
	case k.ctx.Err() != nil:
	case k.next == nil:
		k.next = time.AfterFunc(after, k.renew)
	default:
		k.next.Reset(after)
	}
}

// close returns when nobody asks for keys any more.
func (k *keySet) close() {
	k.stop()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.next != nil {
		k.next.Stop()
	}
	k.client.CloseIdleConnections()
}

// locateLocked asks the issuer where its keys are.
func (k *keySet) locateLocked() error {
	ctx, cancel := context.WithTimeout(k.ctx, readTimeout)
	defer cancel()
	document, err := readIssuer(ctx, k.client, k.issuer)
	if err != nil {
		return err
	}
	at := member(document, "jwks_uri")
	if at == "" {
		return errors.New("the authorization server publishes no keys (jwks_uri)")
	}
	if err := wellknown.From(k.issuer, at); err != nil {
		return err
	}
	k.at = at
	return nil
}

// fetch returns what is published, and when to look again.
func (k *keySet) fetch() (document []byte, life time.Duration, err error) {
	ctx, cancel := context.WithTimeout(k.ctx, readTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, k.at, nil)
	if err != nil {
		return nil, 0, err
	}
	resp, err := k.client.Transport.RoundTrip(r) // and follows no redirect
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, 0, errors.New("the authorization server does not give its keys: " + resp.Status)
	}
	document, err = io.ReadAll(io.LimitReader(resp.Body, wellknown.MaxDocument))
	return document, lifeOf(resp.Header), err
}

// lifeOf is how long keys may be used without a look: max-age of Cache-Control (RFC 9111, section
// 5.2.2.1), within bounds, of which the lower one holds without any.
func lifeOf(h http.Header) time.Duration {
	life := keysAtLeast
	for directive := range strings.SplitSeq(strings.Join(h.Values("Cache-Control"), ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch seconds, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31); {
		case strings.EqualFold(name, "no-store"), strings.EqualFold(name, "no-cache"):
			return keysAtLeast
		case strings.EqualFold(name, "max-age") && err == nil:
			life = time.Duration(seconds) * time.Second
		}
	}
	return min(max(life, keysAtLeast), keysAtMost)
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

func isNothing(value []byte) bool { return value == nil || rawjson.KindOf(value) == rawjson.Null }
