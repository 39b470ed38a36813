package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

const (
	discovered = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},` +
		`"serverInfo":{"name":"stage","version":"1.0"},"ttlMs":0,"cacheScope":"private"}`
	tools = `{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[` +
		`{"name":"book_flight","inputSchema":{"type":"object"}},{"name":"slow_report","inputSchema":{"type":"object"}},{"name":"busy_queue","inputSchema":{"type":"object"}},` +
		`{"name":"draw_chart","inputSchema":{"type":"object","properties":{"size":{"type":"object","x-mcp-header":"Size"}}}}]}`
	question = `{"resultType":"input_required","requestState":"a-secret-of-the-server","inputRequests":{"where":{"method":"elicitation/create",` +
		`"params":{"mode":"form","message":"Where do you want to fly?","requestedSchema":{"type":"object","properties":{"city":{"type":"string"}}}}}}}`
	again = `{"resultType":"input_required","requestState":"a-secret-of-the-server"}`
	done  = `{"resultType":"complete","content":[{"type":"text","text":"booked"}]}`
)

// serve is a modern server with a tool for each reason why a call hangs.
func serve(w http.ResponseWriter, r *http.Request) {
	var msg struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Name           string
			InputResponses json.RawMessage
		}
	}
	body, _ := io.ReadAll(r.Body)
	if json.Unmarshal(body, &msg) != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	result := ""
	switch msg.Method {
	case "server/discover":
		result = discovered
	case "tools/list":
		result = tools
	case "tools/call":
		if msg.Params.Name == "no_such_tool" {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"there is no a-secret-of-the-server"}}`, msg.ID)
			return
		}
		result = call(r, msg.Params.Name, msg.Params.InputResponses != nil)
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, msg.ID)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, msg.ID, result)
}

func call(r *http.Request, tool string, answered bool) string {
	switch {
	case tool == "slow_report":
		<-r.Context().Done()
	case tool == "busy_queue":
		return again
	case !answered:
		return question
	}
	return done
}
