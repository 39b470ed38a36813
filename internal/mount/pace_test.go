package mount

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/peers"
	"github.com/mcpbridge/bridge/legacy/h1"
)

// hangsAt is a server in front of another one that leaves a call of "hang" unanswered. left gets one when
// nobody waits for it any more, cancelled one for each cancellation.
func hangsAt(t *testing.T, behind string) (front string, left, cancelled chan string) {
	t.Helper()
	left, cancelled = make(chan string, 4), make(chan string, 4)
	return newFront(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case strings.Contains(string(body), `"hang"`):
			<-r.Context().Done()
			left <- string(body)
			return
		case strings.Contains(string(body), "notifications/cancelled"):
			defer func() { cancelled <- string(body) }()
		}
		req, _ := http.NewRequestWithContext(r.Context(), r.Method, behind, strings.NewReader(string(body)))
		req.Header = r.Header.Clone()
		resp, err := wire.Transport.RoundTrip(req)
		if err != nil {
			return
		}
		defer resp.Body.Close()
		for name, values := range resp.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}), left, cancelled
}

// A server that does not answer what is handed on to it as it is costs its client an error, and nobody else a place
// at the server. It hears of that.
func TestASilentServerKeepsNoPlace_D11(t *testing.T) {
	old, modern := newSDKServer(t, "2025-06-18"), peers.NewServer(t, peers.ServerOptions{})
	for kind, lean := range map[string]bool{"http: lean": true, "http: standard": false} {
		for era, behind := range map[string]string{"relayed": old.URL, "passed on": modern.URL} {
			t.Run(era+", "+kind, func(t *testing.T) {
				t.Parallel() // each waits for the bound
				front, left, cancelled := hangsAt(t, behind)
				opt := over(front)
				opt.Concurrency, opt.Bridge.Limits.Flow.Round = 1, 3*time.Second
				setting := "timeouts.round"
				if era == "relayed" { // a session without a stream here may have one elsewhere
					opt.Bridge.Limits.Flow.Call, setting = 3*time.Second, "timeouts.flow"
				}
				url := servedBy(t, opt, lean)
				session, version, head := "", "2026-07-28", "tools/call"
				meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
				if era == "relayed" {
					session, _ = initialize(t, url, "2025-06-18", `{}`)
					version, head, meta = "2025-06-18", "", `"x":0`
				}
				ask := func(id, method, name string) (int, string) {
					req := request(t, http.MethodPost, url, session, `{"jsonrpc":"2.0","id":"`+id+`","method":"`+method+`","params":{"name":"`+name+`",`+meta+`}}`)
					req.Header.Set("Mcp-Protocol-Version", version)
					if head != "" {
						req.Header.Set("Mcp-Method", method)
						req.Header.Set("Mcp-Name", name)
					}
					resp, err := wire.Do(req.WithContext(patience(t)))
					if err != nil {
						t.Fatal(err)
					}
					defer resp.Body.Close()
					all, _ := io.ReadAll(resp.Body)
					return resp.StatusCode, string(all)
				}
				if status, body := ask("p", "tools/call", "hang"); status != http.StatusGatewayTimeout || !strings.Contains(body, `"id":"p","error"`) || !strings.Contains(body, setting) {
					t.Errorf("its client is told %d %s", status, body)
				}
				select {
				case <-left:
				case <-patience(t).Done():
					t.Error("the server goes on")
				}
				if session != "" {
					select {
					case got := <-cancelled:
						if !strings.Contains(got, `"requestId":"p"`) {
							t.Errorf("the server is told %s", got)
						}
					case <-patience(t).Done():
						t.Error("the server is told nothing")
					}
				}
				// Under an id of its own: the server may have yet to do what it was told of the other one.
				if status, body := ask("q", "tools/list", ""); status != http.StatusOK || !strings.Contains(body, `"tools"`) {
					t.Errorf("the next one gets %d %s", status, body)
				}
			})
		}
	}
}

// servedBy puts a mount on a loopback port, behind one of the HTTPs.
func servedBy(t *testing.T, opt Options, lean bool) string {
	t.Helper()
	m, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	standard := &http.Server{Handler: m, ReadHeaderTimeout: time.Minute}
	server := h1.NewStandard(m, standard)
	if lean {
		server = h1.New(m, standard)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }()
	t.Cleanup(func() { m.Close(); _ = server.Close(); <-served })
	return (&url.URL{Scheme: "http", Host: l.Addr().String()}).String()
}
