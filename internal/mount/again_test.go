package mount

import (
	"bufio"
	"fmt"
	"io"
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
