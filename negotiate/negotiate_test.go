package negotiate

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestA2VersionNegotiation(t *testing.T) {
	for _, tc := range []struct {
		requested string
		want      mcp.Version
	}{
		{`"2024-11-05"`, mcp.V20241105}, {`"2025-03-26"`, mcp.V20250326}, {`"2025-06-18"`, mcp.V20250618},
		{`"2025-11-25"`, mcp.V20251125}, {`"2026-07-28"`, mcp.V20251125}, {`"2023-01-01"`, mcp.V20251125},
		{`"DRAFT-2026-v1"`, mcp.V20251125}, {`""`, mcp.V20251125},
	} {
		if v, err := Version([]byte(tc.requested)); err != nil || v != tc.want {
			t.Errorf("%s: got %q, %v", tc.requested, v, err)
		}
	}
	for _, requested := range []string{"", "null", "1", "{}", `["2025-11-25"]`} {
		var raw []byte
		if requested != "" {
			raw = []byte(requested)
		}
		_, err := Version(raw)
		if err == nil || err.Code != jsonrpc.CodeInvalidParams {
			t.Fatalf("%q: %v", requested, err)
		}
		if rawjson.Validate(err.Data) != nil || len(texts(rawjson.Get(err.Data, "supported"))) != 4 || !rawjson.Has(err.Data, "requested") {
			t.Errorf("%q: data %s", requested, err.Data)
		}
	}
}

func TestA11ClassifyByBodyFirst(t *testing.T) {
	modern := `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`
	header := func(kv ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(kv); i += 2 {
			h.Set(kv[i], kv[i+1])
		}
		return h
	}
	for _, tc := range []struct {
		name, method, params string
		header               http.Header
		want                 Era
	}{
		{"legacy initialize with modern headers", mcp.MethodInitialize, `{}`, header("Mcp-Method", "initialize", "Mcp-Protocol-Version", "2026-07-28"), Legacy},
		{"initialize with modern _meta", mcp.MethodInitialize, modern, nil, Legacy},
		{"modern _meta", mcp.MethodToolsCall, modern, nil, Modern},
		{"modern _meta of a draft", mcp.MethodToolsCall, `{"_meta":{"io.modelcontextprotocol/protocolVersion":"DRAFT-2026-v1"}}`, nil, Modern},
		{"plain call", mcp.MethodToolsCall, `{}`, nil, Legacy},
		{"plain call with a legacy version", mcp.MethodToolsCall, `{}`, header("Mcp-Protocol-Version", "2025-11-25"), Legacy},
		{"discover", mcp.MethodDiscover, ``, nil, Modern},
		{"listen", mcp.MethodListen, ``, nil, Modern},
		{"_meta forgotten", mcp.MethodToolsCall, `{}`, header("Mcp-Protocol-Version", "2026-07-28"), Modern},
		{"modern header on a session", mcp.MethodToolsCall, `{}`, header("Mcp-Protocol-Version", "2026-07-28", "Mcp-Session-Id", "s"), Legacy},
		{"nonsense version", mcp.MethodToolsCall, `{}`, header("Mcp-Protocol-Version", "zzz"), Legacy},
		{"a response", "", ``, header("Mcp-Protocol-Version", "2026-07-28"), Legacy},
		{"initialized", mcp.NotificationInitialized, ``, header("Mcp-Protocol-Version", "2026-07-28"), Legacy},
	} {
		if got := Classify(tc.method, []byte(tc.params), tc.header); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

// fake is a Peer with a fixed outcome.
type fake struct {
	outcome Outcome
	legacy  []string
	late    bool
	asked   atomic.Int32
	wait    time.Duration
}

func (f *fake) Discover(ctx context.Context) Outcome {
	f.asked.Add(1)
	select {
	case <-time.After(f.wait):
		return f.outcome
	case <-ctx.Done():
		return Outcome{Err: ctx.Err()}
	}
}
func (f *fake) LegacyOffer(context.Context) Offer { return Offer{Versions: f.legacy, Late: f.late} }

func discover(versions, more string) Outcome {
	return Outcome{Result: []byte(`{"resultType":"complete","supportedVersions":[` + versions + `],"capabilities":{}` + more + `}`)}
}

func TestVerdictComesFromSupportedVersions(t *testing.T) {
	lost := errors.New("lost")
	for _, tc := range []struct {
		name    string
		outcome Outcome
		legacy  []string
		era     Era
		version string
		text    string // in the error, "" for none
	}{
		{"modern", discover(`"2026-07-28"`, ""), nil, Modern, "2026-07-28", ""},
		{"dual", discover(`"2026-07-28","2025-11-25"`, ""), nil, Dual, "2026-07-28", ""},
		{"answers discover but is legacy", discover(`"2025-11-25","2025-06-18"`, ""), nil, Legacy, "", "2025-11-25, 2025-06-18"},
		{"A-24 another modern version", discover(`"2027-01-01"`, ""), nil, Modern, "", "2027-01-01"},
		{"what is no version beside one", discover(`"2026-07-28\u001b[31m","2026-07-28"`, ""), nil, Modern, "2026-07-28", ""},
		{"nothing that is a version", discover(`"2026-07-28\u001b[31m","","a b","\u202e2"`, ""), nil, Unknown, "", "supportedVersions"},
		{"an error without a version", Outcome{Error: &jsonrpc.Error{Code: -32022, Data: []byte(`{"supported":["2030-01-01\r\nx"]}`)}}, nil, Unknown, "", "offers no version"},
		{"no versions", discover(``, ""), nil, Unknown, "", "supportedVersions"},
		{"no versions of who answers initialize", Outcome{Result: []byte(`{}`)}, []string{"2025-06-18"}, Legacy, "", "2025-06-18"},
		{"A-24 unsupported version", Outcome{Error: &jsonrpc.Error{Code: -32022, Data: []byte(`{"supported":["2027-01-01"]}`)}}, nil, Modern, "", "2027-01-01"},
		{"refuses what it names", Outcome{Error: &jsonrpc.Error{Code: -32022, Data: []byte(`{"supported":["2026-07-28"]}`)}}, nil, Modern, "2026-07-28", "refuses"},
		{"header mismatch is modern", Outcome{Error: &jsonrpc.Error{Code: -32020}}, nil, Modern, "", "refused"},
		{"method not found", Outcome{Error: &jsonrpc.Error{Code: -32601}}, []string{"2025-06-18"}, Legacy, "", "2025-06-18"},
		{"a code of its own", Outcome{Error: &jsonrpc.Error{Code: -32000}}, nil, Legacy, "", "does not speak"},
		{"no modern body", Outcome{Err: lost, NotModern: true}, []string{"2024-11-05"}, Legacy, "", "2024-11-05"},
		{"internal error is no evidence", Outcome{Error: &jsonrpc.Error{Code: -32603}}, nil, Unknown, "", "failed"},
		{"a failure of who answers initialize", Outcome{Error: &jsonrpc.Error{Code: -32603}}, []string{"2025-06-18"}, Legacy, "", "2025-06-18"},
		{"doubtful", Outcome{Err: lost, Doubtful: true}, nil, Unknown, "", "lost"},
		{"doubtful, and answers initialize", Outcome{Err: lost, Doubtful: true}, []string{"2025-06-18"}, Legacy, "", "2025-06-18"},
		{"doubtful, and knows of nothing older", Outcome{Err: lost, Doubtful: true}, []string{"2026-07-28"}, Unknown, "", "lost"},
		{"lost is no evidence", Outcome{Err: lost}, nil, Unknown, "", "lost"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := NewProber(Options{}).Probe(t.Context(), "", &fake{outcome: tc.outcome, legacy: tc.legacy})
			if v.Era != tc.era || v.Version != tc.version {
				t.Fatalf("verdict %+v", v)
			}
			if (v.Err == nil) != (tc.text == "") || v.Err != nil && !strings.Contains(v.Err.Error(), tc.text) {
				t.Fatalf("error %v", v.Err)
			}
		})
	}
}

// A server of both eras that fails for a moment is not one of the older era, which ends what goes on with it.
func TestAServerOfBothErasMayFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := discover(`"2026-07-28","2025-11-25"`, "")
		f := &fake{outcome: both, legacy: []string{"2025-11-25"}}
		p := NewProber(Options{})
		era := func(want Era) {
			t.Helper()
			if v := p.Again(t.Context(), "", f); v.Era != want {
				t.Errorf("verdict %+v", v)
			}
		}
		for _, failure := range []Outcome{
			{Error: &jsonrpc.Error{Code: jsonrpc.CodeInternal}}, {Err: errors.New("HTTP 500"), Doubtful: true}, {Result: []byte(`{}`)},
		} {
			era(Dual)
			f.outcome = failure
			era(Unknown)
			time.Sleep(standsFor / 2)
			era(Unknown)
			f.outcome = both
			time.Sleep(standsFor)
			era(Dual)
			f.outcome = failure
			era(Unknown)
			time.Sleep(standsFor)
			era(Legacy) // it is another one by now
			era(Legacy)
			f.outcome = both
		}
	})
}

func TestI8DraftVersionsAreAcceptedWhereAllowedOnly(t *testing.T) {
	f := &fake{outcome: discover(`"DRAFT-2026-v1"`, "")}
	if v := NewProber(Options{}).Probe(t.Context(), "", f); v.Usable() || v.Era != Modern {
		t.Fatalf("verdict %+v", v)
	}
	newest := func(offered []byte) string {
		version, _ := rawjson.Text(slices.Collect(rawjson.Elements(offered))[0])
		return version
	}
	v := NewProber(Options{Fallback: newest}).Probe(t.Context(), "", f)
	if !v.Usable() || v.Version != "DRAFT-2026-v1" {
		t.Fatalf("verdict %+v", v)
	}
	both := &fake{outcome: discover(`"DRAFT-2026-v1","2026-07-28"`, "")}
	if v := NewProber(Options{Fallback: newest}).Probe(t.Context(), "", both); v.Version != "2026-07-28" {
		t.Fatalf("A-15: verdict %+v", v)
	}
}

func TestI12DraftsWithAHandshakeAreNamed(t *testing.T) {
	f := &fake{outcome: Outcome{Error: &jsonrpc.Error{Code: -32601}}, legacy: []string{"DRAFT-2026-v1"}}
	v := NewProber(Options{Fallback: func([]byte) string { return "DRAFT-2026-v1" }}).Probe(t.Context(), "", f)
	if v.Usable() || v.Era != Legacy || !strings.Contains(v.Err.Error(), "handshake (it offers DRAFT-2026-v1)") {
		t.Fatalf("verdict %+v", v)
	}
}

func TestABurstOfProbesAsksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{outcome: discover(`"2026-07-28"`, ""), wait: time.Second}
		p := NewProber(Options{})
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if v := p.Probe(t.Context(), "", f); !v.Usable() {
					t.Errorf("verdict %+v", v)
				}
			})
		}
		wg.Wait()
		if n := f.asked.Load(); n != 1 {
			t.Fatalf("asked %d times", n)
		}
	})
}

func TestB40VerdictsLiveForTheirCappedTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{outcome: discover(`"2026-07-28"`, `,"ttlMs":3600000,"cacheScope":"private"`)}
		p := NewProber(Options{MaxTTL: time.Minute})
		ask := func(want int32) {
			t.Helper()
			p.Probe(t.Context(), "", f)
			if n := f.asked.Load(); n != want {
				t.Fatalf("asked %d times, want %d", n, want)
			}
		}
		ask(1)
		time.Sleep(59 * time.Second)
		ask(1)
		time.Sleep(2 * time.Second)
		ask(2)
		p.Forget()
		ask(3)
		f.outcome = discover(`"2026-07-28"`, `,"ttlMs":-5`)
		p.Forget()
		ask(4)
		ask(5)
	})
}

func TestFailuresAreAskedAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{outcome: Outcome{Err: errors.New("down")}}
		p := NewProber(Options{})
		p.Probe(t.Context(), "", f)
		f.outcome = discover(`"2025-11-25"`, `,"ttlMs":3600000`)
		if v := p.Probe(t.Context(), "", f); v.Era != Legacy {
			t.Fatalf("verdict %+v", v)
		}
		time.Sleep(DefaultLegacyTTL)
		f.outcome = discover(`"2026-07-28"`, "")
		if v := p.Probe(t.Context(), "", f); !v.Usable() {
			t.Fatalf("verdict %+v", v)
		}
	})
}

// TestWhatNamedNoVersionIsAskedAgainSoon: a proxy that answers 405 while the server is away is no legacy server.
func TestWhatNamedNoVersionIsAskedAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{outcome: Outcome{NotModern: true, Err: errors.New("answered HTTP 405")}}
		p := NewProber(Options{LegacyTTL: time.Minute})
		if v := p.Probe(t.Context(), "", f); v.Era != Legacy || v.Usable() {
			t.Fatalf("verdict %+v", v)
		}
		f.outcome = discover(`"2026-07-28"`, "")
		time.Sleep(DefaultLegacyTTL)
		if v := p.Probe(t.Context(), "", f); !v.Usable() {
			t.Fatalf("verdict %+v", v)
		}
	})
}

// A server of both eras that was slow to come up serves a client of the older one meanwhile.
func TestWhoAnswersLateIsNoLegacyServerForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{outcome: Outcome{NotModern: true, Silent: true, Err: errors.New("timed out")}, legacy: []string{"2025-11-25"}, late: true}
		p := NewProber(Options{LegacyTTL: time.Hour})
		if v := p.Probe(t.Context(), "", f); !v.LegacyServer() {
			t.Fatalf("verdict %+v", v)
		}
		time.Sleep(DefaultLegacyTTL)
		f.legacy = nil // it has come up since, and is asked nothing more
		if v := p.Probe(t.Context(), "", f); v.Era != Unknown {
			t.Fatalf("verdict %+v", v)
		}
		if n := f.asked.Load(); n != 3 {
			t.Errorf("who has come up is asked server/discover %d times", n)
		}
	})
}

func TestB42PrivateVerdictsStayWithTheirPrincipal(t *testing.T) {
	ask := func(scope string, principals ...string) int32 {
		f := &fake{outcome: discover(`"2026-07-28"`, `,"ttlMs":60000`+scope)}
		p := NewProber(Options{})
		for _, who := range principals {
			p.Probe(t.Context(), who, f)
		}
		return f.asked.Load()
	}
	for _, tc := range []struct {
		scope      string
		principals []string
		want       int32
	}{
		{`,"cacheScope":"private"`, []string{"a", "a", "b", ""}, 3},
		{``, []string{"a", "b"}, 2},
		{`,"cacheScope":"odd"`, []string{"", "b"}, 2},
		{`,"cacheScope":"public"`, []string{"", "a", "b"}, 1},
		{`,"cacheScope":"public"`, []string{"a", "a", ""}, 2}, // B-45
	} {
		if n := ask(tc.scope, tc.principals...); n != tc.want {
			t.Errorf("scope %s, %q: asked %d times, want %d", tc.scope, tc.principals, n, tc.want)
		}
	}
}

func TestACallerThatGivesUpDoesNotSpoilTheProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{outcome: discover(`"2026-07-28"`, `,"ttlMs":60000`), wait: time.Second}
		p := NewProber(Options{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { time.Sleep(time.Millisecond); cancel() }()
		if v := p.Probe(ctx, "", f); !errors.Is(v.Err, context.Canceled) {
			t.Fatalf("verdict %+v", v)
		}
		if v := p.Probe(t.Context(), "", f); !v.Usable() || f.asked.Load() != 1 {
			t.Fatalf("verdict %+v after %d questions", v, f.asked.Load())
		}
	})
}

func TestVerdictTextsAreBounded(t *testing.T) {
	long := `"` + strings.Repeat("x", 60) + `"`
	out := discover(strings.Repeat(long+",", 100)+long, "")
	v := NewProber(Options{}).Probe(t.Context(), "", &fake{outcome: out})
	if v.Err == nil || len(v.Err.Error()) > 500 || len(v.Versions) > maxVersions {
		t.Fatalf("%d versions, error %v", len(v.Versions), v.Err)
	}
}

func TestACachedVerdictKeepsItsGeneration(t *testing.T) {
	f, p := &fake{outcome: discover(`"2026-07-28"`, `,"ttlMs":60000`)}, NewProber(Options{})
	first, again := p.Probe(t.Context(), "", f), p.Probe(t.Context(), "", f)
	if first.Generation == 0 || again.Generation != first.Generation {
		t.Errorf("generations %d and %d of one verdict", first.Generation, again.Generation)
	}
	p.Forget()
	if fresh := p.Probe(t.Context(), "", f); fresh.Generation == first.Generation {
		t.Error("another verdict has the same generation")
	}
}

// What a server says of itself is kept by all sessions, and so it is bounded.
func TestWhatAServerSaysOfItselfIsBounded(t *testing.T) {
	long := judgeResult([]byte(`{"supportedVersions":["2026-07-28"],"instructions":"`+strings.Repeat("x", maxDiscover)+`"}`), nil)
	if long.Usable() || !strings.Contains(long.Err.Error(), "the limit is") {
		t.Errorf("%v", long.Err)
	}
	message := []byte(`{"result":{"supportedVersions":["2026-07-28"]}}`)
	result := message[10 : len(message)-1]
	if v := judgeResult(result, nil); !v.Usable() || &v.Discover[0] == &result[0] {
		t.Errorf("%v, and what is kept is part of the message: %v", v.Err, v.Usable())
	}
}

// TestAProbeThatTookTooLongSaysHowLong, and which setting says so, if one does.
func TestAProbeThatTookTooLongSaysHowLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, opt := range map[string]Options{
			": it has 15s for its first answer":                  {},
			": it has 25s for its first answer (timeouts.start)": {Timeout: 25 * time.Second, Setting: "timeouts.start"},
		} {
			v := NewProber(opt).Probe(t.Context(), "", &fake{wait: time.Hour})
			if v.Err == nil || !strings.HasSuffix(v.Err.Error(), want) || !errors.Is(v.Err, context.DeadlineExceeded) {
				t.Errorf("%v", v.Err)
			}
		}
	})
}

// A session is opened after several looks at the server: who has waited for one does not wait for the next.
func TestNobodyWaitsTwiceForAServerThatIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, late := NewProber(Options{}), &fake{wait: time.Hour}
		began := time.Now()
		first, second := p.Probe(t.Context(), "", late), p.Probe(t.Context(), "", late)
		if took := time.Since(began); took != DefaultTimeout || first.Err == nil || second.Err == nil {
			t.Errorf("after %v: %v, %v", took, first.Err, second.Err)
		}
		time.Sleep(lateTTL)
		if v := p.Probe(t.Context(), "", &fake{outcome: discover(`"2026-07-28"`, "")}); v.Err != nil {
			t.Error(v.Err)
		}
	})
}

// slowLegacy is a legacy server that takes its time for initialize.
type slowLegacy struct {
	*fake
	takes time.Duration
}

func (s slowLegacy) LegacyOffer(ctx context.Context) Offer {
	select {
	case <-time.After(s.takes):
		return Offer{Versions: []string{"2025-06-18"}}
	case <-ctx.Done():
		return Offer{}
	}
}

// What shows that a server is a legacy one may start it.
func TestALegacyServerHasAsLongAsItsProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuses := Outcome{Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound}}
		p := NewProber(Options{Timeout: 10 * time.Second, Setting: "timeouts.discover"})
		if v := p.Probe(t.Context(), "", slowLegacy{&fake{outcome: refuses}, 9 * time.Second}); v.Era != Legacy {
			t.Errorf("%+v", v)
		}
		p.Forget()
		v := p.Probe(t.Context(), "", slowLegacy{&fake{outcome: refuses}, time.Minute})
		if v.Era != Unknown || v.Err == nil || !strings.Contains(v.Err.Error(), "timeouts.discover") {
			t.Errorf("%+v", v)
		}
	})
}

// Failures that lie apart are none of one endeavour: each is waited out.
func TestFailuresADayApartAreWaitedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := discover(`"2026-07-28","2025-11-25"`, "")
		f := &fake{outcome: both, legacy: []string{"2025-11-25"}}
		p := NewProber(Options{})
		if v := p.Again(t.Context(), "", f); v.Era != Dual {
			t.Fatal(v)
		}
		for range 2 {
			f.outcome = Outcome{Error: &jsonrpc.Error{Code: jsonrpc.CodeInternal}}
			if v := p.Again(t.Context(), "", f); v.Era != Unknown {
				t.Errorf("%+v", v)
			}
			f.outcome = both
			time.Sleep(24 * time.Hour) // with sessions that are open all the time, and reach, which sees that it is well
		}
	})
}

// A client whose own credentials fail at a server of both eras has what everybody knows of it forgotten.
func TestOneClientsFailuresCostNoTrust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := &fake{outcome: discover(`"2026-07-28","2025-11-25"`, ""), legacy: []string{"2025-11-25"}}
		bad := &fake{outcome: Outcome{Error: &jsonrpc.Error{Code: jsonrpc.CodeInternal}}, legacy: []string{"2025-11-25"}}
		p := NewProber(Options{})
		p.Again(t.Context(), "", both)
		p.Again(t.Context(), "bad", bad)
		time.Sleep(standsFor)
		p.Again(t.Context(), "bad", bad)
		both.outcome = bad.outcome // for a moment, a minute after it was well
		if v := p.Again(t.Context(), "", both); v.Era != Unknown {
			t.Errorf("the others: %+v", v)
		}
	})
}
