package streamable

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// Tools with a right annotation, a wrong one, and none.
const (
	goodTool  = `{"name":"good","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"R"}}}}`
	badTool   = `{"name":"bad","inputSchema":{"type":"object","properties":{"r":{"type":"number","x-mcp-header":"R"}}}}`
	plainTool = `{"name":"plain","inputSchema":{"type":"object"}}`
)

func TestE42SameOriginRedirectsKeepTheRequest(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt Options) {
		p := newScripted(t, func(n int, w http.ResponseWriter, g *got, _ *http.Request) {
			if n == 0 {
				w.Header().Set("Location", "/moved?x=1")
				w.WriteHeader(308)
				return
			}
			answer(w, g.msg.ID, `{}`)
		})
		cl := call(mcp.MethodToolsCall, `"name":"t"`)
		cl.Authorization = "Bearer x"
		mustDo(t, newClient(t, p.URL, opt), cl)
		a, b := p.next(t), p.next(t)
		if b.method != "POST" || b.path != "/moved?x=1" || string(a.body) != string(b.body) || b.header.Get("Authorization") != "Bearer x" {
			t.Fatalf("%s %s %s", b.method, b.path, b.body)
		}
	})
}

func TestE41RetryAfterIsHonouredOnceForReadOnlyMethods(t *testing.T) {
	for method, want := range map[string]int{mcp.MethodToolsList: 2, mcp.MethodToolsCall: 1} {
		p := newScripted(t, func(_ int, w http.ResponseWriter, _ *got, _ *http.Request) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(503)
		})
		c := newClient(t, p.URL, Options{})
		_, err := c.Do(t.Context(), call(method, `"name":"t"`), nil)
		if f, ok := err.(*upstream.Failure); !ok || f.Cause != upstream.Busy || f.RetryAfter != time.Second || len(p.seen) != want {
			t.Errorf("%s: %v after %d requests", method, err, len(p.seen))
		}
	}
}

// What else is sent again, such as an answer (D-15), goes by the time that the failure has.
func TestE41NowIsATimeToComeBack(t *testing.T) {
	for _, after := range []string{"0", "00", "Tue, 28 Jul 2020 00:00:07 GMT"} {
		p := newScripted(t, func(_ int, w http.ResponseWriter, _ *got, _ *http.Request) {
			w.Header().Set("Retry-After", after)
			w.WriteHeader(503)
		})
		_, err := newClient(t, p.URL, Options{}).Do(t.Context(), call(mcp.MethodToolsCall, `"name":"t"`), nil)
		if f, ok := err.(*upstream.Failure); !ok || f.RetryAfter <= 0 || len(p.seen) != 1 {
			t.Errorf("%s: %v after %d requests", after, err, len(p.seen))
		}
	}
}

// "Now" is a time to come back, as a date is that is past by the bridge's clock.
func TestE41AServerThatIsBackAtOnceIsAskedAgain(t *testing.T) {
	for _, after := range []string{"0", "00", "Tue, 28 Jul 2020 00:00:07 GMT"} {
		for _, status := range []int{429, 503} {
			p := newScripted(t, func(n int, w http.ResponseWriter, g *got, _ *http.Request) {
				if n == 0 {
					w.Header().Set("Retry-After", after)
					w.WriteHeader(status)
					return
				}
				answer(w, g.msg.ID, `{"tools":[]}`)
			})
			if _, err := newClient(t, p.URL, Options{}).Do(t.Context(), call(mcp.MethodToolsList, ""), nil); err != nil || len(p.seen) != 2 {
				t.Errorf("%d, %s: %v after %d requests", status, after, err, len(p.seen))
			}
		}
	}
}

func TestE39UnsupportedVersionIsSentAgainOnce(t *testing.T) {
	for _, tc := range []struct {
		name, supported string
		drafts          upstream.Fallback
		requests        int
		version         string
	}{
		{"the very version just sent", `["2026-07-28"]`, nil, 2, "2026-07-28"},
		{"a draft that is accepted", `["2025-11-25","DRAFT-2026-v1"]`, onlyDraft{}, 2, "DRAFT-2026-v1"},
		{"nothing mutual", `["2025-11-25"]`, nil, 1, ""},
		{"nothing at all", `null`, nil, 1, ""},
	} {
		eachTransport(t, func(t *testing.T, opt Options) {
			opt.Fallback = tc.drafts
			p := newScripted(t, func(n int, w http.ResponseWriter, g *got, _ *http.Request) {
				if n == 0 {
					refuseWith(w, g.msg.ID, 400, mcp.CodeUnsupportedVersion, `{"supported":`+tc.supported+`}`)
					return
				}
				answer(w, g.msg.ID, `{}`)
			})
			ans := mustDo(t, newClient(t, p.URL, opt), call(mcp.MethodToolsCall, `"name":"t"`))
			if len(p.seen) != tc.requests || (ans.Error == nil) != (tc.requests == 2) {
				t.Fatalf("%s: %d requests, %+v", tc.name, len(p.seen), ans)
			}
			if tc.requests == 1 {
				return
			}
			a, b := p.next(t), p.next(t)
			inBody, _ := rawjson.Text(rawjson.Get(rawjson.Get(b.msg.Params, "_meta"), mcp.MetaProtocolVersion))
			if a.msg.ID == b.msg.ID || b.header.Get("Mcp-Protocol-Version") != tc.version || inBody != tc.version {
				t.Fatalf("%s: second request %v %s", tc.name, b.header, b.body)
			}
		})
	}
}

// A server that has run the tool may hand on what another server told it, with the code of a refusal.
func TestWhatIsNoRefusalOfTheVersionIsNotSentAgain(t *testing.T) {
	const behind = `{"code":-32022,"message":"from behind","data":{"supported":["DRAFT-2026-v1","2026-07-28"]}}`
	for method, requests := range map[string]int{mcp.MethodToolsCall: 1, mcp.MethodToolsList: 2} { // lists may be read twice
		for _, media := range []string{mediaJSON, mediaSSE} {
			eachTransport(t, func(t *testing.T, opt Options) {
				opt.Fallback = onlyDraft{}
				p := newScripted(t, func(n int, w http.ResponseWriter, g *got, _ *http.Request) {
					w.Header().Set("Content-Type", media)
					if media == mediaSSE {
						fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\ndata: ")
					}
					fmt.Fprintf(w, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":%s}\n\n", g.msg.ID, behind)
				})
				ans := mustDo(t, newClient(t, p.URL, opt), call(method, `"name":"t"`))
				if len(p.seen) != requests || ans.Error == nil || ans.Error.Code != mcp.CodeUnsupportedVersion {
					t.Fatalf("%s, %s: %d requests, %+v", method, media, len(p.seen), ans)
				}
			})
		}
	}
}

func TestAnEndlessRefusalEnds(t *testing.T) {
	for _, code := range []int{mcp.CodeUnsupportedVersion, mcp.CodeHeaderMismatch} {
		p := newScripted(t, func(_ int, w http.ResponseWriter, g *got, _ *http.Request) {
			refuseWith(w, g.msg.ID, 400, code, `{"supported":["2026-07-28"]}`)
		})
		ans := mustDo(t, newClient(t, p.URL, Options{}), call(mcp.MethodToolsCall, `"name":"é"`))
		if ans.Error == nil || ans.Error.Code != code || len(p.seen) > 4 {
			t.Fatalf("%d: %+v after %d requests", code, ans, len(p.seen))
		}
	}
}

// B-25: refresh to the last page, recompute, send once more under a new id.
func TestB25HeaderMismatchRefreshesEveryPageAndSendsOnce(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt Options) {
		p := newScripted(t, func(n int, w http.ResponseWriter, g *got, _ *http.Request) {
			switch {
			case g.msg.Method == mcp.MethodToolsList && rawjson.Get(g.msg.Params, "cursor") == nil:
				answer(w, g.msg.ID, `{"tools":[`+plainTool+`],"nextCursor":""}`)
			case g.msg.Method == mcp.MethodToolsList:
				answer(w, g.msg.ID, `{"tools":[`+goodTool+`]}`)
			case g.header.Get("Mcp-Param-R") != "eu":
				refuseWith(w, g.msg.ID, 400, mcp.CodeHeaderMismatch, "null")
			default:
				answer(w, g.msg.ID, `{"content":[]}`)
			}
		})
		c := newClient(t, p.URL, opt)
		cl := call(mcp.MethodToolsCall, `"name":"good","arguments":{"r":"eu"}`)
		cl.Params = []byte(strings.Replace(string(cl.Params), `"_meta":{`, `"_meta":{"progressToken":1,`, 1))
		if ans := mustDo(t, c, cl); ans.Error != nil {
			t.Fatal(ans.Error)
		}
		first, list := p.next(t), p.next(t)
		if rawjson.Has(rawjson.Get(list.msg.Params, "_meta"), "progressToken") || !rawjson.Has(rawjson.Get(list.msg.Params, "_meta"), mcp.MetaClientCapabilities) {
			t.Fatalf("refresh %s", list.body)
		}
		if page := p.next(t); string(rawjson.Get(page.msg.Params, "cursor")) != `""` {
			t.Fatalf("second page %s", page.body)
		}
		if again := p.next(t); again.msg.ID == first.msg.ID || string(again.msg.Params) != string(first.msg.Params) {
			t.Fatalf("resent %s", again.body)
		}
		mustDo(t, c, cl)
		if g := p.next(t); g.header.Get("Mcp-Param-R") != "eu" {
			t.Fatal("the schema was not remembered")
		}
		p.none(t)
	})
}

func TestB23ACallToAnExcludedToolIsRefusedLocally(t *testing.T) {
	p := newScripted(t, func(_ int, w http.ResponseWriter, g *got, _ *http.Request) {
		answer(w, g.msg.ID, `{"tools":[`+badTool+`,`+goodTool+`]}`)
	})
	c := newClient(t, p.URL, Options{})
	if ans := mustDo(t, c, call(mcp.MethodToolsList, "")); string(ans.Result) != `{"tools":[`+goodTool+`]}` {
		t.Fatalf("list %s", ans.Result)
	}
	p.next(t)
	ans := mustDo(t, c, call(mcp.MethodToolsCall, `"name":"bad"`))
	if ans.Error == nil || ans.Error.Code != jsonrpc.CodeInvalidParams || !rawjson.Has(ans.Error.Data, "bridge") {
		t.Fatalf("%+v", ans)
	}
	p.none(t)
}

// What one client's list has servers told in headers, another's argument does not go into.
func TestSchemasAreThoseOfAClientsOwnHeaders_H10(t *testing.T) {
	eachTransport(t, func(t *testing.T, opt Options) {
		p := newScripted(t, func(_ int, w http.ResponseWriter, g *got, _ *http.Request) {
			if g.msg.Method != mcp.MethodToolsList {
				answer(w, g.msg.ID, `{"content":[]}`)
			} else if g.header.Get("X-Api-Key") == "K1" {
				answer(w, g.msg.ID, `{"tools":[`+goodTool+`]}`)
			} else {
				answer(w, g.msg.ID, `{"tools":[{"name":"good","inputSchema":{"type":"object"}}]}`)
			}
		})
		c := newClient(t, p.URL, opt)
		by := func(key, method string) string {
			cl := call(method, `"name":"good","arguments":{"r":"eu"}`)
			cl.Header = http.Header{"X-Api-Key": {key}}
			mustDo(t, c, cl)
			return p.next(t).header.Get("Mcp-Param-R")
		}
		by("K2", mcp.MethodToolsList)
		by("K1", mcp.MethodToolsList)
		if k1, k2 := by("K1", mcp.MethodToolsCall), by("K2", mcp.MethodToolsCall); k1 != "eu" || k2 != "" {
			t.Errorf("K1 tells %q, K2 %q", k1, k2)
		}
	})
}
