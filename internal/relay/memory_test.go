package relay

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
)

const (
	kib  = 1 << 10
	many = 40 // calls, whose responses take five times what there is
)

// crowd makes many calls at once whose responses are large, and stop in the middle until one
// was refused.
func crowd(t *testing.T, begin, rest func(w io.Writer, id string)) {
	t.Helper()
	refused := make(chan struct{})
	s := &legacyServer{answer: func(w http.ResponseWriter, r *http.Request, msg *jsonrpc.Message) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		begin(w, string(msg.ID))
		_ = http.NewResponseController(w).Flush()
		select {
		case <-refused:
			rest(w, string(msg.ID))
		case <-r.Context().Done():
		}
	}}
	front := over(t, s.serve)
	front.opt.MaxMessage = 1 << 20
	memory := budget.New(2 << 20)
	account, err := memory.Open("somebody")
	if err != nil {
		t.Fatal(err)
	}
	relay := New(Options{Server: front})
	caller := downstream.Caller{Authorization: "Bearer mine", Account: account}
	conv, _, err := relay.Open(t.Context(), caller, message(t, initialize), newClient())
	if err != nil {
		t.Fatal(err)
	}
	ends := make(chan string, many)
	for id := range many {
		out := newReply()
		conv.Serve(t.Context(), caller, downstream.NewRequest(message(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call"}`, id))), out)
		go func() { <-out.done; ends <- out.final }()
	}
	served := 0
	for n := range many {
		switch got := next(t, ends); {
		case strings.Contains(got, `"result"`):
			served++
		case !strings.Contains(got, "limits.memory"):
			t.Errorf("a call got %.200s", got)
		}
		if n == 0 {
			close(refused)
		}
	}
	if served == 0 {
		t.Error("no call was served")
	}
	conv.Close(nil)
	relay.Close()
	if left := memory.Used(); left != 0 {
		t.Errorf("%d bytes are still charged", left)
	}
}

// next returns how a call ended.
func next(t *testing.T, ends <-chan string) string {
	t.Helper()
	select {
	case got := <-ends:
		return got
	case <-time.After(20 * time.Second):
		t.Fatal("nothing was refused")
		return ""
	}
}

// What of a response has come is held, be it whole or not: many that do not end must not cost
// more than the session may hold.
func TestLargeResponsesAreChargedToTheSession(t *testing.T) {
	filler := strings.Repeat("x", 200*kib)
	t.Run("one message", func(t *testing.T) {
		crowd(t, func(w io.Writer, id string) {
			w.(http.ResponseWriter).Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"x":"%s`, id, filler)
		}, func(w io.Writer, _ string) { _, _ = io.WriteString(w, `"}}`) })
	})
	t.Run("a stream", func(t *testing.T) {
		crowd(t, func(w io.Writer, id string) {
			w.(http.ResponseWriter).Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w, `data: {"jsonrpc":"2.0","id":%s,"result":{"x":"%s`, id, filler)
		}, func(w io.Writer, _ string) { _, _ = io.WriteString(w, "\"}}\n\n") })
	})
}

// The stream of a server of HTTP+SSE is the session: a message for which there is no memory ends
// it, since nobody can tell which call it was for.
func TestAMessageForWhichThereIsNoMemoryEndsAStreamThatIsTheSession(t *testing.T) {
	s, c := newOld(), newClient()
	front := over(t, s.ServeHTTP)
	front.opt.MaxMessage = 1 << 20
	memory := budget.New(2 << 20)
	account, err := memory.Open("somebody")
	if err != nil {
		t.Fatal(err)
	}
	relay := New(Options{Server: front.SSE()})
	caller := downstream.Caller{Authorization: "Bearer mine", Account: account}
	conv, _, err := relay.Open(t.Context(), caller, message(t, initialize), c)
	if err != nil {
		t.Fatal(err)
	}
	large := `{"jsonrpc":"2.0","method":"notifications/x","params":{"x":"` + strings.Repeat("x", 200*kib) + `"}}`
	s.stream <- large
	if got := <-c.pushed; got != large {
		t.Errorf("while there is memory, pushed %.100s", got)
	}
	account.Charge(1 << 20)
	s.stream <- large
	if why := <-c.ended; !strings.Contains(why.Error(), "limits.memory") {
		t.Errorf("the session ends with %v", why)
	}
	conv.Close(errOver)
	relay.Close()
	<-s.left
	if left := memory.Used(); left != 1<<20 {
		t.Errorf("%d bytes are still charged", left-1<<20)
	}
}

// What a client needs of a refusal is in its head. Its page, of which nobody reads anything, is no reason to tell of something else.
func TestARefusalIsToldThoughThereIsNoMemoryForItsPage(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		media  string
		want   string
	}{
		"401":              {http.StatusUnauthorized, "text/html", ""},
		"403 in JSON":      {http.StatusForbidden, "application/json", ""},
		"an error page":    {http.StatusBadGateway, "text/html", "HTTP 502"},
		"an error in JSON": {http.StatusBadRequest, "application/json", "limits.memory"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &legacyServer{answer: func(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Message) {
				w.Header().Set("Www-Authenticate", "Bearer x")
				w.Header().Set("Content-Type", tc.media)
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, strings.Repeat("x", 60*kib))
			}}
			front := over(t, s.serve)
			front.opt.MaxMessage = 1 << 20
			account, err := budget.New(4 << 20).Open("somebody")
			if err != nil {
				t.Fatal(err)
			}
			relay := New(Options{Server: front})
			defer relay.Close()
			caller := downstream.Caller{Authorization: "Bearer mine", Account: account}
			conv, _, err := relay.Open(t.Context(), caller, message(t, initialize), newClient())
			if err != nil {
				t.Fatal(err)
			}
			defer conv.Close(nil)
			hold := budget.On(account)
			defer hold.Release()
			for hold.Grow(kib) == nil { // until there is no more
			}
			out := newReply()
			conv.Serve(t.Context(), caller, downstream.NewRequest(message(t, aCall)), out)
			got := out.wait(t)
			if tc.want == "" && (out.refused == nil || out.refused.Status != tc.status || len(out.refused.Challenge) != 1) {
				t.Errorf("the client is not told to sign in; it gets %s, %v", got, out.refused)
			}
			if !strings.Contains(got, tc.want) {
				t.Errorf("the client gets %s", got)
			}
		})
	}
}
