package mount

import (
	"encoding/base64"
	"net/http"
	"testing"

	"github.com/mcpbridge/bridge/internal/peers"
)

// A token that the server never saw was not accepted by it, whatever it claims.
func TestAForgedTokenTakesNoSessionOverBehindCredentialsThatEndHere_H6(t *testing.T) {
	claims := base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"https://as","sub":"alice"}`))
	alice, forged := "Bearer eyJhbGciOiJSUzI1NiJ9."+claims+".signed", "Bearer eyJhbGciOiJub25lIn0."+claims+"."
	server := peers.NewServer(t, peers.ServerOptions{}).URL
	dropped, configured := over(server), over(server)
	dropped.DropAuthorization = true
	configured.Upstream.Header = http.Header{"Authorization": {"Bearer configured"}}
	for name, opt := range map[string]Options{"dropped": dropped, "configured": configured, "a command": process(t, good, 0)} {
		_, url := serve(t, opt)
		as := func(token, method, session, body string) *http.Response {
			req := request(t, method, url, session, body)
			req.Header.Set("Authorization", token)
			resp, err := wire.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			return resp
		}
		session := as(alice, http.MethodPost, "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`).
			Header.Get("Mcp-Session-Id")
		if session == "" {
			t.Fatalf("%s: no session", name)
		}
		as(alice, http.MethodPost, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		as(forged, http.MethodPost, session, listTools)
		if resp := as(forged, http.MethodDelete, session, ""); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: with a forged token DELETE answers %s", name, resp.Status)
		}
		if resp := as(alice, http.MethodDelete, session, ""); resp.StatusCode != http.StatusNoContent {
			t.Errorf("%s: with the right one it answers %s", name, resp.Status)
		}
	}
}
