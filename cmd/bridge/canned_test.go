package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
)

// discovered is what a modern server answers to server/discover.
const discovered = `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],` +
	`"capabilities":{"tools":{}},"serverInfo":{"name":"canned","version":"1"},"ttlMs":0,"cacheScope":"private"}}`

// cannedAnswers are those of whole servers, by kind and method.
var cannedAnswers = map[string]map[string]string{
	"modern": {
		"server/discover": discovered,
		"tools/list":      `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","tools":[{"name":"of_child","inputSchema":{"type":"object"}}]}}`,
	},
	"weather": {
		"server/discover": discoveredBy("weather", `"2026-07-28"`),
		"tools/list":      weatherTools,
	},
	"dual": {
		"server/discover": discoveredBy("both", `"2026-07-28","2025-11-25","2025-06-18"`),
		"tools/list":      `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"forecast","inputSchema":{"type":"object"}}]}}`,
		"initialize":      initializedBy("2025-06-18"),
	},
	"legacy": {
		"initialize": initializedBy("2025-06-18"),
		"tools/list": `{"jsonrpc":"2.0","id":ID,"result":{"tools":[{"name":"forecast","inputSchema":{"type":"object"}},{"name":"history","inputSchema":{"type":"object"}}]}}`,
	},
}

func discoveredBy(name, versions string) string {
	return `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","supportedVersions":[` + versions + `],"ttlMs":60000,"cacheScope":"public",` +
		`"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{}},` +
		`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"` + name + `","version":"2.1.0"}}}}`
}

func initializedBy(version string) string {
	return `{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"` + version + `","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}}`
}

// weatherTools has one tool that no client may be shown, and one that only the
// newest can be shown as it is.
const weatherTools = `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[` +
	`{"name":"forecast","inputSchema":{"type":"object","properties":{"city":{"type":"string","x-mcp-header":"City"}}}},` +
	`{"name":"warnings","inputSchema":{"type":"object"},"outputSchema":{"type":"array","items":{"type":"string"}}},` +
	`{"name":"history","inputSchema":{"type":"object","properties":{"days":{"type":"array","x-mcp-header":"Days"}}}},` +
	`{"name":"radar","inputSchema":true}]}}`

// canned answers JSON-RPC requests by their method; others get a -32601.
func canned(status int, byMethod map[string]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		answer, known := cannedAnswer(body, byMethod)
		if !known {
			w.WriteHeader(status)
		}
		_, _ = io.WriteString(w, answer)
	})
}

// cannedAnswer returns the answer to one message, "" for a notification.
func cannedAnswer(message []byte, byMethod map[string]string) (answer string, known bool) {
	var msg struct {
		ID     json.RawMessage
		Method string
	}
	_ = json.Unmarshal(message, &msg)
	answer, known = byMethod[msg.Method]
	if !known {
		answer = `{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"Method not found"}}`
	}
	if msg.ID == nil {
		return "", known
	}
	return strings.ReplaceAll(answer, "ID", string(msg.ID)), known
}

// cannedArgument, with a kind behind it, makes the test binary a server over stdio.
const cannedArgument = "canned"

// cannedCommand returns the command line of a modern server over stdio.
func cannedCommand(t *testing.T) []string {
	t.Helper()
	return cannedKind(t, "modern")
}

// cannedKind does so for any kind of server; "dead" ends as soon as it starts.
func cannedKind(t *testing.T, kind string) []string {
	t.Helper()
	return []string{os.Args[0], cannedArgument, kind}
}

// serveCanned answers requests line by line until the input ends.
func serveCanned(kind string, in io.Reader, out io.Writer) {
	if kind == "dead" {
		fmt.Fprintln(os.Stderr, "cannot open the database")
		os.Exit(3)
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if answer, _ := cannedAnswer(lines.Bytes(), cannedAnswers[kind]); answer != "" {
			_, _ = fmt.Fprintln(out, answer)
		}
	}
}
