package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// TestQuestionsOfACommandSurviveTheProcess: its server ends with the bridge, and the next one gets the answer with
// the request state. The command here is another bridge, which modern messages pass unchanged.
func TestQuestionsOfACommandSurviveTheProcess(t *testing.T) {
	for _, mode := range []string{"shared", "per-session"} {
		t.Run(mode, func(t *testing.T) {
			a := newAsker(t)
			server := httptest.NewServer(a)
			t.Cleanup(server.Close)
			k := launch(t, "--store.url", "file:"+filepath.Join(t.TempDir(), "sessions.db"), "--command-mode", mode,
				"--command-env", programVariable, "--", os.Args[0], "stdio", "--upstream", server.URL)
			k.session = k.request(http.MethodPost, initializeAsking).Header.Get("Mcp-Session-Id")
			f := k.follow(k.request(http.MethodPost, callAsk))
			id := fmt.Sprint(f.message()["id"])
			k.again()
			k.answer(id)
			wantDone(t, k.resume(f.last).message())
			wantRounds(t, a, 1)
			if status := k.status(http.MethodPost, listTools); status != http.StatusOK {
				t.Errorf("a call of the session gets %d", status)
			}
		})
	}
}
