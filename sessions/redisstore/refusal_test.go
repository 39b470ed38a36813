package redisstore

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/redistest"
)

// TestServersThatCannotBeUsedAreExplained: to who has to repair that, and knows nothing of this program's libraries.
func TestServersThatCannotBeUsedAreExplained(t *testing.T) {
	server := redistest.Start(t)
	server.Must("ACL", "SETUSER", "few", "on", ">p", "~*", "-@all", "+get", "+set", "+hello", "+auth", "+ping")
	stranger := httptest.NewServer(http.NotFoundHandler())
	defer stranger.Close()
	for url, says := range map[string]string{
		"rediss://" + server.Addr():                "does it speak TLS?",
		"redis://few:p@" + server.Addr():           "has the rights that the bridge needs",
		"redis://" + stranger.URL[len("http://"):]: "not as Redis does",
		"redis://127.0.0.1:1":                      "refused; does Redis run there, and is it the right port?",
	} {
		if _, err := Open(background, url); err == nil || !strings.Contains(err.Error(), says) || strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "ClientOption") {
			t.Errorf("%s: got %v", url, err)
		}
	}
	server.Must("CONFIG", "SET", "requirepass", "hush")
	if _, err := Open(background, "redis://"+server.Addr()); err == nil || !strings.Contains(err.Error(), "wants a password") {
		t.Errorf("without the password: %v", err)
	}
}
