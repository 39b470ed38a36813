package session

import (
	"encoding/base64"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/rawjson"
)

// clockSkew is how far the clock of a token's issuer may be behind ours.
const clockSkew = time.Minute

// Expiry returns when the time of credentials is over; zero: that is unknown, or was
// so before they were taken, which is left to the upstream to judge.
func Expiry(auth string) time.Time {
	seconds, ok := rawjson.Int(rawjson.Get(claimsOf(auth), "exp"))
	expires := time.Unix(seconds, 0).Add(clockSkew)
	if !ok || !expires.After(time.Now()) {
		return time.Time{}
	}
	return expires
}

// claimsOf returns what a JSON web token claims; nil for anything else, as tokens
// are opaque to all but their issuer and resource. Nothing is verified here.
func claimsOf(auth string) []byte {
	scheme, token, _ := strings.Cut(auth, " ")
	parts := strings.Split(token, ".")
	if !strings.EqualFold(scheme, "Bearer") || len(parts) != 3 {
		return nil
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || rawjson.Validate(claims) != nil {
		return nil
	}
	return claims
}

// Claim returns a claim of credentials that is a text, "" where there is none. It was not
// verified here.
func Claim(auth, name string) string { return textIn(claimsOf(auth), name) }

func textIn(claims []byte, name string) string {
	text, _ := rawjson.Text(rawjson.Get(claims, name))
	return text
}
