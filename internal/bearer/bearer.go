// Package bearer reads Authorization headers, and is the only one to do so: where two
// readers find two tokens in one header, who makes up one of them passes for the owner of
// the other. What is not exactly one token is none to the bridge, whoever it is passed on to.
package bearer

import (
	"crypto/rand"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/rawjson"
)

// Token returns the token of a header of the scheme Bearer: one space and a token68
// (RFC 6750, section 2.1); "" for anything else.
func Token(authorization string) string {
	scheme, token, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") || !isToken68(token) {
		return ""
	}
	return token
}

// Single reports whether a header can be read in one way only as far as white space is
// what parts it: a scheme and one word after it, or one word.
func Single(authorization string) bool {
	_, word, more := strings.Cut(authorization, " ")
	return authorization != "" && !strings.ContainsAny(word, " \t") && (word != "" || !more)
}

// Claims returns what the JSON web token of a header claims: three parts of the base64url
// alphabet, of which the first two are JSON objects; nil for anything else. Nothing is
// verified.
func Claims(authorization string) []byte {
	parts := strings.Split(Token(authorization), ".")
	if len(parts) != 3 || parts[2] == "" || !isBase64URL(parts[2]) || object(parts[0]) == nil {
		return nil
	}
	return object(parts[1])
}

// Time reads a claim that is seconds since 1970, also of issuers that write them as a text. A number that is
// beyond any is no time.
func Time(claims []byte, name string) (time.Time, bool) {
	const most = 1 << 40 // which is far enough, and fits every calculation
	value := rawjson.Get(claims, name)
	written, isText := rawjson.Text(value)
	if !isText {
		written = string(value)
	}
	seconds, err := strconv.ParseFloat(written, 64)
	if rawjson.KindOf([]byte(written)) != rawjson.Number || err != nil {
		return time.Time{}, false
	}
	return time.Unix(int64(max(-most, min(seconds, most))), 0), true
}

// Subject returns issuer and subject that the JSON web token of a header claims; "" for anything else, and where either is
// no name (IsName).
func Subject(authorization string) string {
	claims := Claims(authorization)
	issuer, _ := rawjson.Text(rawjson.Get(claims, "iss"))
	subject, _ := rawjson.Text(rawjson.Get(claims, "sub"))
	if !IsName(issuer) || !IsName(subject) {
		return ""
	}
	return issuer + "\x00" + subject
}

// IsName reports whether a decoded claim can name somebody, so that no two names are taken for one: half a character reads
// like any other half, and a zero byte parts issuer and subject.
func IsName(claim string) bool { return claim != "" && !strings.ContainsAny(claim, "\x00\uFFFD") }

// Forged returns a header with a JSON web token that says the same as this one, and that
// nobody has signed; "" for anything else.
func Forged(authorization string) string {
	if Claims(authorization) == nil {
		return ""
	}
	at := strings.LastIndexByte(authorization, '.') + 1
	signature := make([]byte, max(32, base64.RawURLEncoding.DecodedLen(len(authorization)-at)))
	rand.Read(signature) // never fails
	return authorization[:at] + base64.RawURLEncoding.EncodeToString(signature)
}

// object decodes a part of a token, nil if it is no JSON object.
func object(part string) []byte {
	if !isBase64URL(part) { // the decoder takes line breaks
		return nil
	}
	text, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil || rawjson.Validate(text) != nil || rawjson.KindOf(text) != rawjson.Object {
		return nil
	}
	return text
}

func isBase64URL(text string) bool {
	for i := range len(text) {
		if c := text[i]; !isAlphanumeric(c) && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

func isToken68(text string) bool {
	body := strings.TrimRight(text, "=")
	for i := range len(body) {
		if c := body[i]; !isAlphanumeric(c) && !strings.ContainsRune("-._~+/", rune(c)) {
			return false
		}
	}
	return body != ""
}

func isAlphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}
