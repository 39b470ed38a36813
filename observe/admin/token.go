package admin

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
)

// minToken is the shortest token that is taken, in characters.
const minToken = 16

// Token opens the admin listener.
type Token struct {
	text   string
	cookie string
	// Shown reports whether the token was made here, so that somebody has to be told.
	Shown bool
}

// NewToken reads the token from a file, or makes one up when there is none.
func NewToken(file string) (Token, error) {
	if file == "" {
		return newToken(rand.Text(), true), nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return Token{}, fmt.Errorf("admin.token-file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if len(token) < minToken {
		return Token{}, fmt.Errorf("admin.token-file: the token in %s is shorter than %d characters", file, minToken)
	}
	return newToken(token, false), nil
}

// newToken derives the cookie, so that it outlives a restart with the same token and
// does not give the token away.
func newToken(text string, shown bool) Token {
	mac := hmac.New(sha256.New, []byte(text))
	mac.Write([]byte("mcp-bridge admin cookie"))
	return Token{text: text, cookie: base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), Shown: shown}
}

// Fragment is what to append to the listener's address for a browser.
func (t *Token) Fragment() string { return "#token=" + t.text }

func (t *Token) is(text string) bool {
	return subtle.ConstantTimeCompare([]byte(text), []byte(t.text)) == 1
}

func (t *Token) isCookie(value string) bool {
	return subtle.ConstantTimeCompare([]byte(value), []byte(t.cookie)) == 1
}
