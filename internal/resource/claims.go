package resource

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/internal/bearer"
	"github.com/mcpbridge/bridge/rawjson"
)

// claimSet is the claims of a token whose signature is good, and in which no name is there twice.
// Names are read letter by letter (RFC 7519, section 4): encoding/json takes "Sub" for "sub",
// and whoever can have a claim of another name issued would be somebody else by it.
type claimSet []byte

// early is how long before its time a token is good, of issuers whose clocks are ahead.
const early = 4 * time.Minute

// judge returns for whom the claims stand.
func (c claimSet) judge(issuer string, audience []string, now time.Time) (*identity, *badToken) {
	expires, ends := c.time("exp")
	begins, later := c.time("nbf")
	switch {
	case member(c, "iss") != issuer:
		return nil, foreign(issuer)
	case !ends:
		return nil, &badToken{text: "the token does not say when it ends"}
	case expires.Before(now.Add(-skew)):
		return nil, &badToken{text: "the token has expired"}
	case !later && rawjson.Has(c, "nbf"):
		return nil, foreign(issuer)
	case later && begins.After(now.Add(early)):
		return nil, &badToken{text: "the token is not good yet; is the clock right?"}
	case c.otherKind():
		return nil, notForAccess
	case rawjson.Has(c, "cnf"): // RFC 7800: whoever brings it must prove more (RFC 8705, section 3; RFC 9449, section 7.1)
		return nil, boundToKey
	case !slices.ContainsFunc(texts(rawjson.Get(c, "aud")), func(a string) bool { return slices.Contains(audience, a) }):
		return nil, &badToken{text: "the token is for somebody else"}
	case !bearer.IsName(member(c, "sub")):
		return nil, &badToken{text: "the token names no subject"}
	}
	sum := sha256.Sum256([]byte(issuer + "\x00" + member(c, "sub")))
	return &identity{principal: base64.RawURLEncoding.EncodeToString(sum[:18]), scopes: c.scopes(), expires: expires}, nil
}

func foreign(issuer string) *badToken {
	return &badToken{text: "the token is not one of " + issuer + ", or is damaged"}
}

var notForAccess = &badToken{text: "the token is no access token, but one of another kind"}

var boundToKey = &badToken{text: "the token is bound to a key, for which no proof is taken here; ask for one that is not"}

// otherKind reports whether claims show a token that is for something else: identities (OpenID Connect,
// and what Cognito and Keycloak say of theirs), renewals, and events such as a logout. A hash of an access
// token (at_hash) says nothing: Dex has one in its access tokens, too.
func (c claimSet) otherKind() bool {
	return rawjson.Has(c, "c_hash") || rawjson.Has(c, "events") ||
		member(c, "token_use") == "id" || slices.Contains([]string{"ID", "Refresh", "Offline", "Logout"}, member(c, "typ"))
}

// isAccess reports whether the header's typ lets a token be one for access. Many servers say
// "JWT", or nothing, where RFC 9068 wants at+jwt; what has the name of another kind is one (RFC
// 8725, section 3.11).
func isAccess(typ string) bool {
	kind := strings.TrimPrefix(strings.ToLower(typ), "application/")
	return kind == "at+jwt" || !strings.HasSuffix(kind, "+jwt") && !strings.HasSuffix(kind, "-jwt")
}

// scopes are under both of the names that issuers use, as a text or as a list.
func (c claimSet) scopes() []string {
	granted := strings.Fields(member(c, "scope"))
	if scp := rawjson.Get(c, "scp"); rawjson.KindOf(scp) == rawjson.Array {
		return append(granted, texts(scp)...)
	}
	return append(granted, strings.Fields(member(c, "scp"))...)
}

// time reads a time, which is a number (RFC 7519, section 2): whoever judges a token takes no text for one.
func (c claimSet) time(name string) (time.Time, bool) {
	if rawjson.KindOf(rawjson.Get(c, name)) != rawjson.Number {
		return time.Time{}, false
	}
	return bearer.Time(c, name)
}

// member reads a text of an object, "" for anything else.
func member(object []byte, name string) string {
	value, _ := rawjson.Text(rawjson.Get(object, name))
	return value
}

// texts reads one text, or the texts of an array.
func texts(value []byte) (all []string) {
	if one, ok := rawjson.Text(value); ok {
		return []string{one}
	}
	if rawjson.KindOf(value) != rawjson.Array {
		return nil
	}
	for element := range rawjson.Elements(value) {
		if text, ok := rawjson.Text(element); ok {
			all = append(all, text)
		}
	}
	return all
}
