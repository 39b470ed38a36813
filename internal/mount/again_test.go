package mount

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Gateways hand one connection to several clients, one after the other: the server of the
// one before may end, and ends nothing of the next one's.
func TestInitializeAgainBeginsAnewWithALegacyServer_A4(t *testing.T) {
	for kind, start := range legacyServers {
		for _, way := range []string{"stdio", "WebSocket"} {
			for _, between := range []string{"", "initialized", "a call"} {
				t.Run(way+" to "+kind+", "+between, func(t *testing.T) {
					opt, _ := start(t)
					m, base := mounted(t, opt)
					pipe := ways[way](t, m, base).(*mcp.IOTransport)
					answers := bufio.NewReader(pipe.Reader)
					say := func(text string) {
						t.Helper()
						if _, err := io.WriteString(pipe.Writer, text+"\n"); err != nil {
							t.Fatal(err)
						}
					}
					want := func(part string) {
						t.Helper()
						if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, part) {
							t.Fatalf("the client gets %q, %v", line, err)
						}
					}
					for id := range 3 {
						say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, id))
						want(fmt.Sprintf(`"id":%d,"result"`, id))
						if between != "" || id == 2 {
							say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
						}
						if between == "a call" || id == 2 {
							say(`{"jsonrpc":"2.0","id":7,"method":"ping"}`)
							want(`"id":7,"result"`)
						}
					}
				})
			}
		}
	}
}

// newHanging is a server of an era that never answers a call; begun and gone hear of its requests.
func newHanging(t *testing.T, legacy bool, begun, gone chan<- struct{}) string {
	return newFront(t, func(w http.ResponseWriter, r *http.Request) {
		var msg struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &msg)
		result := `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}`
		switch {
		case msg.Method == "tools/call":
			begun <- struct{}{}
			<-r.Context().Done()
			gone <- struct{}{}
			return
		case legacy && msg.Method == "initialize":
			w.Header().Set("Mcp-Session-Id", "s")
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
		case legacy && (msg.Method == "server/discover" || r.Method != http.MethodPost):
			w.WriteHeader(http.StatusBadRequest)
			return
		case len(msg.ID) == 0:
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, msg.ID, result)
	})
}

// A call of the client before is cancelled at the server, and nobody hears of it: its id may be
// one of the next client's by now.
func TestACallOfTheClientBeforeIsCancelledWithoutAnAnswer_A4(t *testing.T) {
	const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	for kind, legacy := range map[string]bool{"a modern server": false, "a legacy server": true} {
		for _, way := range []string{"stdio", "WebSocket"} {
			t.Run(way+" to "+kind, func(t *testing.T) {
				begun, gone := make(chan struct{}, 1), make(chan struct{}, 1)
				m, base := mounted(t, over(newHanging(t, legacy, begun, gone)))
				pipe := ways[way](t, m, base).(*mcp.IOTransport)
				answers := bufio.NewReader(pipe.Reader)
				for _, text := range []string{initialize, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":{}}}`, initialize, `{"jsonrpc":"2.0","id":"last","method":"ping"}`} {
					if _, err := io.WriteString(pipe.Writer, text+"\n"); err != nil {
						t.Fatal(err)
					}
					if strings.Contains(text, "tools/call") {
						<-begun
						continue
					}
					if line, err := answers.ReadString('\n'); err != nil || strings.Contains(line, `"id":7`) || !strings.Contains(line, `"result"`) {
						t.Fatalf("the client gets %q, %v", line, err)
					}
				}
				select {
				case <-gone:
				case <-patience(t).Done():
					t.Error("the call goes on at the server")
				}
			})
		}
	}
}
