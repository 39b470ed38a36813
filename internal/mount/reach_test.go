package mount

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

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

// yes is a legacy server that says so to everything.
type yes struct{ upstream.Caller }

func (yes) Do(context.Context, *upstream.Call, func(jsonrpc.Message)) (*upstream.Answer, error) {
	return &upstream.Answer{Result: []byte(`{}`)}, nil
}
func (yes) Signs() upstream.Signs { return upstream.Signs{} }
func (yes) LegacyOffer(context.Context, *upstream.Call) negotiate.Offer {
	return negotiate.Offer{Versions: []string{"2025-06-18"}}
}

func TestAServerThatSaysYesToEverythingStaysALegacyOne_E40(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &verdicts{policy: negotiate.RelayAuto, prober: negotiate.NewProber(negotiate.Options{LegacyTTL: legacyTTL}), caller: yes{}, log: zerolog.Nop()}
		none := func(*upstream.Failure) {}
		if !v.relays(t.Context(), downstream.Caller{}, []byte(`{"protocolVersion":"2025-06-18"}`)) {
			t.Fatal("not at start")
		}
		for range 20 {
			time.Sleep(15 * time.Second)
			_ = v.reach(t.Context(), none)
			if !v.relays(t.Context(), downstream.Caller{}, []byte(`{"protocolVersion":"2025-06-18"}`)) {
				t.Errorf("no client is relayed any more; %v", v.judge(t.Context(), downstream.Caller{}).Err)
			}
		}
	})
}

// rolled is a server that is rolled back.
type rolled struct {
	upstream.Caller
	old    bool
	status int
}

func (f *rolled) Do(context.Context, *upstream.Call, func(jsonrpc.Message)) (*upstream.Answer, error) {
	if f.old {
		cause := upstream.BadResponse
		if f.status >= 500 {
			cause = upstream.ServerError
		}
		return nil, &upstream.Failure{Cause: cause, Status: f.status}
	}
	return &upstream.Answer{Result: []byte(`{"supportedVersions":["2026-07-28"],"ttlMs":300000}`)}, nil
}
func (f *rolled) Signs() upstream.Signs { return upstream.Signs{} }
func (f *rolled) LegacyOffer(context.Context, *upstream.Call) negotiate.Offer {
	if !f.old {
		return negotiate.Offer{}
	}
	return negotiate.Offer{Versions: []string{"2025-06-18"}}
}

// It is recognised within about a minute, whatever was to be believed for longer.
func TestARolledBackServerThatFailsIsRecognised_E40(t *testing.T) {
	for _, status := range []int{422, 500} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &rolled{status: status}
				v := &verdicts{policy: negotiate.RelayAuto, prober: negotiate.NewProber(negotiate.Options{LegacyTTL: legacyTTL}), caller: f, log: zerolog.Nop()}
				none := func(*upstream.Failure) {}
				v.judge(t.Context(), downstream.Caller{})
				f.old = true
				began := time.Now()
				for !v.legacyOnly.Load() {
					time.Sleep(5 * time.Second)
					_ = v.reach(t.Context(), none)
				}
				if took := time.Since(began); took > 90*time.Second {
					t.Errorf("HTTP %d: it took %v until the server of another era was recognised", status, took)
				}
			})
		})
	}
}
