package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
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
