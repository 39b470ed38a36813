package mount

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/internal/relayed"
	"github.com/mcpbridge/bridge/mcp"
)

// remembering is what is remembered of 16 sessions of a server.
func remembering() *remote {
	return &remote{sessions: &serverSessions{Sessions: relayed.New(relayed.Options{Capacity: 16, Idle: time.Hour}), verdicts: &verdicts{}}}
}

// Which sessions are the server's own, is known of a bounded number.
func TestAStrangerHasNobodysSessionOfTheServerForgotten(t *testing.T) {
	synctest.Test(t, strangerFloods)
}

func strangerFloods(t *testing.T) {
	r := remembering()
	open := func(tenant, session string) {
		req, err := http.NewRequestWithContext(context.WithValue(t.Context(), openingKey{}, relayed.Owner{Tenant: tenant}), http.MethodPost, "http://localhost", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.sessions.answered(&http.Response{Request: req, Header: http.Header{mcp.HeaderSessionID: {session}}})
		r.holds(session) // it is in use
	}
	for i := range 4 {
		open(fmt.Sprint("tenant ", i), fmt.Sprint("session-", i))
	}
	for i := range 40 {
		time.Sleep(10 * time.Second) // what was used within a minute makes no room
		open("stranger", fmt.Sprint("flood-", i))
	}
	for i := range 4 {
		if !r.holds(fmt.Sprint("session-", i)) {
			t.Errorf("session %d is forgotten", i)
		}
	}
	if !r.holds("flood-39") || r.sessions.Len() > 16 {
		t.Errorf("%d sessions, without the latest one perhaps", r.sessions.Len())
	}
}
