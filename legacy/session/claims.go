package session

import (
	"time"

	"github.com/mcpbridge/bridge/internal/bearer"
	"github.com/mcpbridge/bridge/rawjson"
)

// clockSkew is how far the clock of a token's issuer may be behind ours.
const clockSkew = time.Minute

// Expiry returns when the time of credentials is over; zero: that is unknown, or was
// so before they were taken, which is left to the upstream to judge.
func Expiry(auth string) time.Time {
	ends, ok := bearer.Time(bearer.Claims(auth), "exp")
	expires := ends.Add(clockSkew)
	if !ok || !expires.After(time.Now()) {
		return time.Time{}
	}
	return expires
}

// Claim returns a claim of credentials that is a text, "" where there is none. It was not
// verified here.
func Claim(auth, name string) string {
	text, _ := rawjson.Text(rawjson.Get(bearer.Claims(auth), name))
	return text
}
