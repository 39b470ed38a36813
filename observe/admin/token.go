package admin

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/internal/smallfile"
)

// minToken is the shortest token that is taken, in characters.
const minToken = 16

// Token opens the admin listener.
type Token struct {
	text string
	// Shown reports whether the token was made here, so that somebody has to be told.
	Shown bool
}

// NewToken reads the token from a file, or makes one up when there is none.
func NewToken(file string) (Token, error) {
	if file == "" {
		return newToken(rand.Text(), true), nil
	}
	text, err := smallfile.Secret(file)
	if err != nil {
		return Token{}, fmt.Errorf("admin.token-file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if len(token) < minToken {
		return Token{}, fmt.Errorf("admin.token-file: the token in %s is shorter than %d characters", file, minToken)
	}
	return newToken(token, false), nil
}

func newToken(text string, shown bool) Token { return Token{text: text, Shown: shown} }

// passLife is how long a pass is taken.
const passLife = 12 * time.Hour

// pass returns what a browser gets for the token: when it ends, and a signature. It
// outlives a restart with the same token, and does not give the token away.
func (t *Token) pass(now time.Time) string {
	return t.signed(strconv.FormatInt(now.Add(passLife).Unix(), 10))
}

func (t *Token) signed(end string) string {
	mac := hmac.New(sha256.New, []byte(t.text))
	mac.Write([]byte("mcp-bridge admin pass " + end))
	return end + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// isPass reports whether a text is a pass that has not ended.
func (t *Token) isPass(text string, now time.Time) bool {
	end, _, _ := strings.Cut(text, ".")
	at, err := strconv.ParseInt(end, 10, 64)
	left := time.Unix(at, 0).Sub(now)
	return err == nil && left > 0 && left <= passLife && subtle.ConstantTimeCompare([]byte(text), []byte(t.signed(end))) == 1
}

// Fragment is what to append to the listener's address for a browser.
func (t *Token) Fragment() string { return "#token=" + t.text }

func (t *Token) is(text string) bool {
	return subtle.ConstantTimeCompare([]byte(text), []byte(t.text)) == 1
}
