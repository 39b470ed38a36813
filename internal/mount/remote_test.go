package mount

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/relayed"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/sessions/store"
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

// A server that refuses the bridge's own login for a while has its sessions all the same: what it is then is a guess.
// Once it has proved to be another one they are forgotten, in the store, too.
func TestAGuessForgetsNoSessionOfTheServer(t *testing.T) {
	shared := store.NewMemory(100)
	opt := over("http://localhost/mcp")
	opt.DropAuthorization, opt.Legacy.Store, opt.Legacy.StoreScope = true, shared, "/mcp"
	v := &verdicts{blind: true, signsIn: true, log: zerolog.Nop()}
	r, err := newRemote(&opt, v)
	if err != nil {
		t.Fatal(err)
	}
	legacy, ada := &negotiate.Verdict{Era: negotiate.Legacy, Versions: []string{"2025-06-18"}}, relayed.Owner{Principal: "ada"}
	v.note(legacy)
	r.sessions.Open(t.Context(), "s", ada)
	known := func() (here, elsewhere bool) {
		t.Helper()
		other := newServerSessions(&opt, v)
		defer other.Close()
		elsewhere, err := other.Find(t.Context(), "s", ada)
		if err != nil {
			t.Fatal(err)
		}
		return r.holds("s"), elsewhere
	}
	v.note(&negotiate.Verdict{Era: negotiate.Modern, Discover: []byte(`{"mcp-bridge/guessed":true}`)})
	if here, elsewhere := known(); !here || !elsewhere {
		t.Errorf("with a guess it is known: here %v, elsewhere %v", here, elsewhere)
	}
	v.note(legacy)
	v.note(&negotiate.Verdict{Era: negotiate.Modern})
	r.servers.Close()
	r.proxy.Close()
	for deadline := patience(t); ; {
		here, elsewhere := known()
		if !here && !elsewhere {
			break
		}
		if deadline.Err() != nil {
			t.Fatalf("of another server it is known: here %v, elsewhere %v", here, elsewhere)
		}
	}
	r.sessions.Close()
}
