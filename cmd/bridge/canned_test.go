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

// canned answers JSON-RPC requests by their method; others get a -32601.
func canned(status int, byMethod map[string]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var msg struct {
			ID     json.RawMessage
			Method string
		}
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &msg)
		w.Header().Set("Content-Type", "application/json")
		answer, known := byMethod[msg.Method]
		if !known {
			w.WriteHeader(status)
			answer = `{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"Method not found"}}`
		}
		_, _ = io.WriteString(w, strings.ReplaceAll(answer, "ID", string(msg.ID)))
	})
}

// cannedVariable makes the test binary a server over stdio.
const cannedVariable = "CANNED_STDIO"

// cannedCommand returns the command line of a modern server over stdio.
func cannedCommand(t *testing.T) []string {
	t.Helper()
	t.Setenv(cannedVariable, "1")
	return []string{os.Args[0]}
}

// serveCanned answers requests line by line until the input ends.
func serveCanned(in io.Reader, out io.Writer) {
	answers := map[string]string{
		"server/discover": discovered,
		"tools/list":      `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","tools":[{"name":"of_child","inputSchema":{"type":"object"}}]}}`,
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var msg struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(lines.Bytes(), &msg)
		answer, known := answers[msg.Method]
		if !known {
			answer = `{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"Method not found"}}`
		}
		if msg.ID != nil {
			_, _ = fmt.Fprintln(out, strings.ReplaceAll(answer, "ID", string(msg.ID)))
		}
	}
}
