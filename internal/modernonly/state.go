// Package modernonly holds what the demo's and the tests' modern-only servers
// share: request state that a peer carries but cannot change, and the refusal
// of legacy traffic. It owns no server.
package modernonly

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// ErrForged reports a sealed value that was not made with this key for this
// subject, or that was changed on its way.
var ErrForged = errors.New("request state was changed or belongs to another call")

// Key signs and verifies. Any length works; 32 random bytes are right.
type Key []byte

// separator is escaped by most JSON encoders (as \u0026), so a peer that
// decodes and encodes instead of echoing shows up on the wire.
const separator = "&"

// Seal returns v, bound to subject, as a string. It fails only when v cannot
// be encoded as JSON.
func (k Key) Seal(subject string, v any) (string, error) {
	payload, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("seal: %w", err)
	}
	text := base64.RawURLEncoding.EncodeToString(payload)
	return text + separator + k.mac(subject, text), nil
}

// Open verifies a sealed string for subject and decodes its value into v. The
// error is ErrForged unless the value does not fit v.
func (k Key) Open(subject, sealed string, v any) error {
	text, mac, ok := strings.Cut(sealed, separator)
	if !ok || !hmac.Equal([]byte(mac), []byte(k.mac(subject, text))) {
		return ErrForged
	}
	payload, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return ErrForged
	}
	return json.Unmarshal(payload, v)
}

func (k Key) mac(subject, text string) string {
	h := hmac.New(sha256.New, k)
	h.Write([]byte(subject))
	h.Write([]byte{0})
	h.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}
