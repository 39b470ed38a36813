package legacy

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/legacy/web"
	"github.com/mcpbridge/bridge/mcp"
)

// What is handed on is charged what it costs before the server is asked, for as long as that
// takes, and refused where there is no memory for it.
func TestWhatIsHandedOnIsCharged(t *testing.T) {
	const modernCall = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}`
	for name, tc := range map[string]struct {
		modern       bool
		method, body string
		lent         bool // may end something: it is served while there is memory for newcomers
	}{
		"a modern listen":    {true, http.MethodPost, listen, false},
		"a modern request":   {true, http.MethodPost, modernCall, false},
		"a relayed GET":      {false, http.MethodGet, "", false},
		"a relayed request":  {false, http.MethodPost, ping, false},
		"a relayed opening":  {false, http.MethodPost, initialize(mcp.V20250618), true},
		"a relayed answer":   {false, http.MethodPost, `{"jsonrpc":"2.0","id":1,"result":{}}`, true},
		"a relayed DELETE":   {false, http.MethodDelete, "", true},
		"an array, of 03-26": {false, http.MethodPost, "[" + ping + "]", false},
	} {
		t.Run(name, func(t *testing.T) { handedOnCharged(t, tc.modern, tc.method, tc.body, tc.lent) })
	}
}

func handedOnCharged(t *testing.T, modern bool, method, body string, lent bool) {
	memory := budget.New(1 << 20)
	asked, others := 0, int64(0)
	server := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked++
		if used := memory.Used() - others; used < handedOnCost || used > handedOnCost+2*requestCost {
			t.Errorf("%d bytes are charged", used)
		}
	})
	fake := newFake()
	fake.modern = server
	var b downstream.Backend = fake
	if !modern {
		b = endlessRelayer{fake, server}
	}
	h := NewHTTP(Options{Memory: memory}, b)
	defer h.Close()
	p := &peer{t: t, url: "http://localhost/", header: http.Header{}}
	if !modern {
		p.session = "theirs"
	}
	send := func() int {
		r, w := p.request(method, body), httptest.NewRecorder()
		r.RemoteAddr = "192.0.2.1:1"
		h.ServeHTTP(w, r)
		return w.Code
	}
	want(t, "status", send(), http.StatusOK)
	want(t, "charged afterwards", memory.Used(), 0)
	others = 300 << 10 // of the same address: there is room for a request, not for handing it on
	memory.Guest(web.Stranger("192.0.2.1:1")).Charge(int(others))
	status, served := http.StatusTooManyRequests, 1
	if lent {
		status, served = http.StatusOK, 2
	}
	want(t, "status without memory", send(), status)
	want(t, "requests of the server", asked, served)
	want(t, "charged at the end", memory.Used(), others)
}

// weighing are replicas that note what is charged while they serve.
type weighing struct {
	nobody
	memory *budget.Budget
	seen   []int64
}

func (w *weighing) Alone(context.Context) bool { return false }

func (w *weighing) HandOnAny(to http.ResponseWriter, _ *http.Request, _ []byte) bool {
	w.seen = append(w.seen, w.memory.Used())
	to.WriteHeader(http.StatusAccepted)
	return true
}

// The same where another replica serves it.
func TestWhatAnotherReplicaServesIsCharged(t *testing.T) {
	memory := budget.New(1 << 20)
	peers := &weighing{memory: memory}
	opt := stored()
	opt.Memory, opt.Peers = memory, peers
	h, p := serve(t, opt, newFake())
	p.initialize(mcp.V20250618)
	h.gate.Shut()
	send := func(method, body string) int {
		r, w := p.request(method, body), httptest.NewRecorder()
		r.RemoteAddr = "192.0.2.1:1"
		h.ServeHTTP(w, r)
		return w.Code
	}
	before := memory.Used()
	want(t, "a stream", send(http.MethodGet, ""), http.StatusAccepted)
	want(t, "a request", send(http.MethodPost, ping), http.StatusAccepted)
	for _, used := range peers.seen {
		if used < before+handedOnCost {
			t.Errorf("%d bytes are charged", used-before)
		}
	}
	want(t, "charged afterwards", memory.Used(), before)
	memory.Guest(web.Stranger("192.0.2.1:1")).Charge(300 << 10)
	want(t, "another stream without memory", send(http.MethodGet, ""), http.StatusTooManyRequests)
	want(t, "what may end something", send(http.MethodPost, ping), http.StatusAccepted)
	want(t, "requests of the other", len(peers.seen), 3)
}
