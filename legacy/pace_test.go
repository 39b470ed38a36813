package legacy

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/rates"
	"github.com/mcpbridge/bridge/mcp"
)

func TestRequestsThatComeTooFastAreRefused(t *testing.T) {
	_, p := serve(t, Options{Rates: rates.New(rates.Options{Session: rates.Rate{PerSecond: .001, Burst: 2}})}, newFake())
	p.initialize(mcp.V20250326)
	want(t, "within the rate", p.post(ping).StatusCode, http.StatusOK)
	want(t, "a batch beyond it", p.post("["+ping+","+ping+"]").StatusCode, http.StatusTooManyRequests)
	want(t, "which counts for nothing", p.post(ping).StatusCode, http.StatusOK)
	resp := p.post(ping)
	want(t, "beyond it", resp.StatusCode, http.StatusTooManyRequests)
	want(t, "again after", resp.Header.Get("Retry-After") != "", true)
	want(t, "says to which", strings.Contains(text(t, resp), `"id":1,"error":{"code":-32603,"message":"too many requests; try again in `), true)
	want(t, "an answer", p.post(`{"jsonrpc":"2.0","id":"q","result":{}}`).StatusCode, http.StatusAccepted)
	p.session = ""
	p.initialize(mcp.V20250326)
	want(t, "another session", p.post(ping).StatusCode, http.StatusOK)
}

// An array larger than what may come at once passes, and what comes next waits for all of it.
func TestAnArrayCountsForEachOfItsRequests(t *testing.T) {
	once := rates.Rate{PerSecond: .001, Burst: 2}
	for name, opt := range map[string]rates.Options{"session": {Session: once}, "principal": {Principal: once}, "address": {Address: once}} {
		t.Run(name, func(t *testing.T) {
			slowly := time.Now()
			_, p := serve(t, Options{Rates: rates.New(opt)}, newFake())
			p.header.Set("Authorization", "Bearer a")
			array := "[" + strings.Repeat(ping+",", 9) + ping + "]"
			p.session = "" // without one each request is of its own version, and none was needed to begin
			p.header.Set(mcp.HeaderProtocolVersion, string(mcp.V20250326))
			if name == "session" {
				p.initialize(mcp.V20250326)
			}
			want(t, "an array", p.post(array).StatusCode, http.StatusOK)
			resp := p.post(ping)
			want(t, "one more", resp.StatusCode, http.StatusTooManyRequests)
			again, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
			if least := 9000 - int(time.Since(slowly).Seconds()) - 1; again < least || again > 9000 {
				t.Errorf("again after %d s, which is less than the array has taken", again)
			}
			want(t, "another array", p.post(array).StatusCode, http.StatusTooManyRequests)
		})
	}
}

// One array of any length would keep an address out for as long as it likes.
func TestARelayedArrayIsBounded(t *testing.T) {
	_, p := serve(t, Options{MaxBatch: 3, Rates: rates.New(rates.Options{Address: rates.Rate{PerSecond: 1, Burst: 4}})}, relaying{fakeBackend: newFake()})
	p.session = "theirs"
	status, body := p.call("[" + strings.Repeat("1,", 3) + "1]")
	want(t, "status", status, http.StatusBadRequest)
	want(t, "says why", strings.Contains(body, "limits.batch"), true)
	want(t, "and counts for nothing", p.post("["+strings.Repeat("1,", 2)+"1]").StatusCode, http.StatusOK)
	want(t, "which one within it does", p.post("["+strings.Repeat("1,", 2)+"1]").StatusCode, http.StatusTooManyRequests)
}

// An array that goes on to a server of its own era is as many requests as one that is
// served here.
func TestARelayedArrayCountsForEachOfItsRequests(t *testing.T) {
	for name, opt := range map[string]rates.Options{
		"rate":    {Address: rates.Rate{PerSecond: .001, Burst: 2}},
		"at once": {AtOnce: rates.AtOnce{Address: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			_, p := serve(t, Options{Rates: rates.New(opt)}, relaying{fakeBackend: newFake()})
			p.session = "theirs"
			array := `[` + ping + `,{"jsonrpc":"2.0","method":"notifications/x"},{"id":7},` + ping + `]`
			if name == "at once" {
				want(t, "three at once", p.post(array).StatusCode, http.StatusTooManyRequests)
				want(t, "two at once", p.post(`[`+ping+`,`+ping+`,{"jsonrpc":"2.0","method":"notifications/x"}]`).StatusCode, http.StatusOK)
				return
			}
			want(t, "an array", p.post(array).StatusCode, http.StatusOK)
			want(t, "another one", p.post(array).StatusCode, http.StatusTooManyRequests)
			want(t, "notifications and answers", p.post(`[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":1,"result":{}}]`).StatusCode, http.StatusOK)
		})
	}
}

func TestTheRateOfAnAddressHoldsForNewcomers(t *testing.T) {
	_, p := serve(t, Options{Rates: rates.New(rates.Options{Address: rates.Rate{PerSecond: .001, Burst: 1}})}, newFake())
	p.initialize(mcp.V20250618)
	p.session = ""
	want(t, "initialize", p.post(initialize(mcp.V20250618)).StatusCode, http.StatusTooManyRequests)
}

// Tokens that nobody has looked at count together, by where they come from, and what they
// claim counts for nothing.
func TestMadeUpCredentialsCountAsOne(t *testing.T) {
	for name, opt := range map[string]Options{
		"rate":    {Rates: rates.New(rates.Options{Principal: rates.Rate{PerSecond: .001, Burst: 2}, Factor: map[string]float64{"gold": 3}}), TierClaim: "plan"},
		"at once": {Rates: rates.New(rates.Options{AtOnce: rates.AtOnce{Principal: 2}, Factor: map[string]float64{"gold": 3}}), TierClaim: "plan"},
	} {
		for vouched, want := range map[bool]int{false: 2, true: 6} {
			t.Run(fmt.Sprint(name, ", vouched for: ", vouched), func(t *testing.T) {
				b := newFake()
				opt.Vouched = func(string) bool { return vouched }
				_, p := serve(t, opt, b)
				passed := 0
				for i := range 6 {
					p.header = http.Header{"Authorization": {"Bearer e30." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"plan":"gold","sub":"%d"}`, i)) + ".sig"}}
					answer := p.async(`{"jsonrpc":"2.0","id":1,"method":"hold","params":{}}`)
					select {
					case c := <-b.held:
						passed++
						defer func() { c.finish(`{}`); <-answer }()
					case resp := <-answer:
						if resp.StatusCode != http.StatusTooManyRequests {
							t.Error(resp.Status)
						}
					}
				}
				if passed != want {
					t.Errorf("%d of 6 pass, want %d", passed, want)
				}
			})
		}
	}
}

func TestTheTierOfAClient(t *testing.T) {
	limits := rates.Options{Principal: rates.Rate{PerSecond: .001, Burst: 1}, Factor: map[string]float64{"gold": 3}}
	token := func(claims string) string {
		return "Bearer e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".sig"
	}
	for name, tc := range map[string]struct {
		opt    Options
		header http.Header
		want   int
	}{
		"claim":         {Options{TierClaim: "plan"}, http.Header{"Authorization": {token(`{"plan":"gold"}`)}}, 3},
		"another claim": {Options{TierClaim: "plan"}, http.Header{"Authorization": {token(`{"plan":"iron"}`)}}, 1},
		"no token":      {Options{TierClaim: "plan"}, http.Header{"Authorization": {"Bearer opaque"}}, 1},
		"header":        {Options{TierHeader: "X-Plan"}, http.Header{"Authorization": {"Bearer a"}, "X-Plan": {"gold"}}, 3},
		"nowhere":       {Options{}, http.Header{"Authorization": {"Bearer b"}, "X-Plan": {"gold"}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			tc.opt.Rates = rates.New(limits)
			_, p := serve(t, tc.opt, newFake())
			p.header = tc.header
			passed := 0
			for range 6 {
				if p.post(ping).StatusCode == http.StatusOK {
					passed++
				}
			}
			want(t, "requests that pass", passed, tc.want)
		})
	}
}
