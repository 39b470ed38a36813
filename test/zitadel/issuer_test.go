package zitadel

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
)

// The account. The example's pages for devices take names for ids: here they are the same.
const (
	user     = "ada"
	password = "only a test"
	accounts = `{"ada": {"ID": "ada", "Username": "ada", "Password": "only a test"}}`
)

// world is the authorization server, and an MCP server that takes its tokens, as far as
// HTTP is concerned.
type world struct {
	*httptest.Server
	issuer    http.Handler
	pages     atomic.Int32 // authorization requests
	renewals  atomic.Int32
	exchanges atomic.Int32 // at the token endpoint, of all kinds
}

// newWorld starts one with clients that were registered beforehand: the server does not
// register any itself, as many do not.
func newWorld(t *testing.T, callback string) *world {
	t.Helper()
	w := &world{}
	w.Server = httptest.NewServer(w)
	t.Cleanup(func() { w.CloseClientConnections(); w.Close() })
	storage.RegisterClients(storage.NativeClient("bridge", callback), storage.DeviceClient("device", "hush"))
	file := filepath.Join(t.TempDir(), "accounts.json")
	if err := os.WriteFile(file, []byte(accounts), 0o600); err != nil {
		t.Fatal(err)
	}
	users, err := storage.StoreFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w.issuer = exampleop.SetupServer(w.URL, storage.NewStorage(users), slog.New(slog.DiscardHandler), false)
	return w
}

func (w *world) endpoint() string { return w.URL + "/mcp" }

// ServeHTTP implements http.Handler.
func (w *world) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/mcp":
		w.guard(out, r)
		return
	case "/.well-known/oauth-protected-resource/mcp":
		_, _ = io.WriteString(out, `{"resource":"`+w.endpoint()+`","authorization_servers":["`+w.URL+`"],"scopes_supported":["openid"]}`)
		return
	case "/auth":
		w.pages.Add(1)
	case "/oauth/token":
		w.exchanges.Add(1)
		if r.FormValue("grant_type") == "refresh_token" {
			w.renewals.Add(1)
		}
	}
	w.issuer.ServeHTTP(out, r)
}

// guard lets whoever has a token of the authorization server in, as that says.
func (w *world) guard(out http.ResponseWriter, r *http.Request) {
	asked := httptest.NewRequestWithContext(r.Context(), http.MethodGet, w.URL+"/userinfo", nil)
	asked.Header.Set("Authorization", r.Header.Get("Authorization"))
	said := httptest.NewRecorder()
	w.issuer.ServeHTTP(said, asked)
	if said.Code != http.StatusOK {
		out.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+w.URL+`/.well-known/oauth-protected-resource/mcp", scope="openid offline_access"`)
		out.WriteHeader(http.StatusUnauthorized)
	}
}
