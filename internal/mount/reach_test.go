package mount

import (
	"context"
	"net/http"
	"testing"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/upstream"
)

// flaky is a server that fails at times.
type flaky struct {
	upstream.Caller
	fails  bool
	asked  int
	legacy bool
}

func (f *flaky) Do(context.Context, *upstream.Call, func(jsonrpc.Message)) (*upstream.Answer, error) {
	f.asked++
	if f.fails {
		return nil, &upstream.Failure{Cause: upstream.ServerError, Status: http.StatusInternalServerError}
	}
	if f.legacy {
		return nil, &upstream.Failure{Cause: upstream.NotModern, Status: http.StatusBadRequest}
	}
	return &upstream.Answer{Result: []byte(`{"supportedVersions":["2026-07-28"],"ttlMs":300000}`)}, nil
}

func (f *flaky) Signs() upstream.Signs { return upstream.Signs{} }

func (f *flaky) LegacyOffer(context.Context, *upstream.Call) negotiate.Offer {
	if f.fails || !f.legacy {
		return negotiate.Offer{}
	}
	return negotiate.Offer{Versions: []string{"2025-06-18"}}
}

func watchedVerdicts(f *flaky) *verdicts {
	v := &verdicts{policy: negotiate.RelayAuto, prober: negotiate.NewProber(negotiate.Options{}), caller: f, log: zerolog.Nop()}
	return v
}

// A legacy server that answers everything with 500 is away.
func TestALegacyServerThatFailsIsNotReady(t *testing.T) {
	f := &flaky{legacy: true}
	v := watchedVerdicts(f)
	none := func(*upstream.Failure) {}
	if err := v.reach(t.Context(), none); err != nil || !v.legacyOnly.Load() {
		t.Fatal(err, v.legacyOnly.Load())
	}
	f.fails = true
	if err := v.reach(t.Context(), none); err == nil {
		t.Error("it answers everything with 500, and counts as there")
	}
}

// A look that fails costs nobody what is known of the server.
func TestALookThatFailsForgetsNothing(t *testing.T) {
	f := &flaky{}
	v := watchedVerdicts(f)
	none := func(*upstream.Failure) {}
	if verdict := v.prober.Probe(t.Context(), "client", v.peer(downstream.Caller{Principal: "client"})); verdict.Err != nil {
		t.Fatal(verdict.Err)
	}
	f.fails = true
	if err := v.reach(t.Context(), none); err == nil {
		t.Fatal("it is there")
	}
	if verdict := v.prober.Probe(t.Context(), "client", v.peer(downstream.Caller{Principal: "client"})); verdict.Err != nil {
		t.Errorf("a client whose verdict was known for five minutes: %v; the server was asked %d times", verdict.Err, f.asked)
	}
}
