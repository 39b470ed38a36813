package legacy

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

const listen = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}`

// endless is a server that answers with a stream, and says when that has begun.
func endless(begun chan<- struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		select {
		case begun <- struct{}{}:
			<-r.Context().Done()
		case <-r.Context().Done():
		}
	})
}

type endlessRelayer struct {
	*fakeBackend
	next http.Handler
}

func (b endlessRelayer) Relayer() downstream.Relayer { return b }

func (b endlessRelayer) Relay(*http.Request, *jsonrpc.Message, func() downstream.Caller) http.Handler {
	return b.next
}

// What is handed on and never ends takes connections here and at the server: one address
// leaves some to others, and what it lets go of can be had again.
func TestStreamsThatAreHandedOnAreBounded(t *testing.T) {
	const mine = 14 // of 16
	begun := make(chan struct{})
	modern := newFake()
	modern.modern = endless(begun)
	everywhere := func() Options { return Options{Endless: budget.NewPlaces(16)} }
	relayer := endlessRelayer{newFake(), endless(begun)}
	for name, tc := range map[string]struct {
		opt          Options
		backend      downstream.Backend
		method, body string
	}{
		"modern listens":                       {Options{MaxSessions: 16}, modern, http.MethodPost, listen},
		"listens whose head says a call":       {Options{MaxSessions: 16}, modern, http.MethodPost, strings.Replace(listen, "{}", `{"a":0}`, 1)},
		"GETs of sessions that the server has": {Options{MaxSessions: 16}, relayer, http.MethodGet, ""},
		"modern listens, of all endpoints":     {everywhere(), modern, http.MethodPost, listen},
		"GETs, of all endpoints":               {everywhere(), relayer, http.MethodGet, ""},
		"answers that are streams":             {everywhere(), relayer, http.MethodPost, ping},
		"what opens sessions":                  {everywhere(), relayer, http.MethodPost, initialize(mcp.V20250618)},
		"what ends them":                       {everywhere(), relayer, http.MethodDelete, ""},
		"notifications":                        {everywhere(), relayer, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`},
	} {
		t.Run(name, func(t *testing.T) {
			_, p := serve(t, tc.opt, tc.backend)
			p.session = "theirs"
			if strings.Contains(tc.body, mcp.MethodListen) {
				p.session = ""
			}
			if tc.body != listen { // bounds go by the body
				p.header.Set(mcp.HeaderMethod, mcp.MethodToolsCall)
			}
			ctx, leave := context.WithCancel(t.Context())
			for range mine {
				resp := p.do(p.request(tc.method, tc.body).WithContext(ctx))
				want(t, "status", resp.StatusCode, http.StatusOK)
				<-begun
			}
			resp := p.do(p.request(tc.method, tc.body))
			want(t, "one more", resp.StatusCode, http.StatusTooManyRequests)
			want(t, "it is told when to try again", resp.Header.Get("Retry-After"), busyAgain)
			if got := text(t, resp); !strings.Contains(got, "with these credentials or from this address") {
				t.Errorf("it is told %s", got)
			}
			leave()
			for { // until the bridge has seen that somebody left
				resp := p.do(p.request(tc.method, tc.body).WithContext(t.Context()))
				if resp.StatusCode == http.StatusOK {
					<-begun
					return
				}
			}
		})
	}
}

// listening is a conversation whose listens last.
type listening struct {
	*fakeConv
	begun chan struct{}
}

func (c listening) Serve(ctx context.Context, _ downstream.Caller, req downstream.Request, out downstream.Reply) {
	req.Link.Pass()
	c.begun <- struct{}{}
	<-ctx.Done()
	out.Abandon()
}

func TestListensOverConnectionsAreBounded(t *testing.T) {
	b := newFake()
	begun := make(chan struct{}, 1)
	b.connected = listening{&fakeConv{backend: b, version: mcp.V20260728, stateless: true}, begun}
	_, p := serveAll(t, Options{MaxSessions: 16}, b)
	c, resp, err := dial(t, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for i := range 14 {
		say(t, c, strings.Replace(listen, `"id":1`, `"id":`+strconv.Itoa(i), 1))
		<-begun
	}
	say(t, c, strings.Replace(listen, `"id":1`, `"id":99`, 1))
	if got := frame(t, c); !strings.Contains(got, `"id":99`) || !strings.Contains(got, tooManyStreamsText) {
		t.Errorf("one more is told %s", got)
	}
}
