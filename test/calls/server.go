package calls

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Request is what a server reads of one. P are the arguments of its call.
type Request[P any] struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string `json:"name"`
		Arguments P      `json:"arguments"`
		State     string `json:"requestState"`
		Meta      struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
		Responses map[string]struct {
			Action  string            `json:"action"`
			Content map[string]string `json:"content"`
		} `json:"inputResponses"`
	} `json:"params"`
}

// Round returns which one the request of a call with so many questions is; false when what
// it carries is not of this call and round.
func (req *Request[P]) Round(name string, questions int) (int, bool) {
	if req.Params.State == "" {
		return 0, len(req.Params.Responses) == 0
	}
	for round := 1; round <= questions; round++ {
		if req.Params.State == State(name, round) {
			given := req.Params.Responses["q"]
			return round, given.Action == "accept" && given.Content["value"] == Answer(Question(name, round))
		}
	}
	return 0, false
}

// Handler is a modern-only server with the tools Act and Read, which call serves. It keeps
// nothing.
func Handler[P any](name string, call func(http.ResponseWriter, *http.Request, *Request[P])) http.Handler {
	discovered := fmt.Sprintf(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"logging":{}},`+
		`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":%q,"version":"1"}},"ttlMs":3600000,"cacheScope":"public"}`, name)
	const listed = `{"resultType":"complete","ttlMs":3600000,"cacheScope":"public","tools":[` +
		`{"name":"act","inputSchema":{"type":"object"}},` +
		`{"name":"read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"idempotentHint":true}}]}`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var req Request[P]
		if json.Unmarshal(body, &req) != nil {
			http.Error(w, "no JSON", http.StatusBadRequest)
			return
		}
		switch req.Method {
		case "server/discover":
			Reply(w, req.ID, discovered)
		case "tools/list":
			Reply(w, req.ID, listed)
		case "tools/call":
			call(w, r, &req)
		default:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, req.ID)
		}
	})
}

// Strayed answers a request that carries another call's state or answer.
func Strayed(w http.ResponseWriter, id json.RawMessage) {
	Reply(w, id, `{"resultType":"complete","isError":true,"content":[]}`)
}

// Response is the text of one with a result.
func Response(id json.RawMessage, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// Reply writes it as JSON.
func Reply(w http.ResponseWriter, id json.RawMessage, result string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, Response(id, result))
}

// Event writes a message as the next event of a stream.
func Event(w http.ResponseWriter, data string) {
	_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
	_ = http.NewResponseController(w).Flush()
}

// Progress writes so many notifications of it, which name the call. After each it calls
// then, if that is not nil.
func (req *Request[P]) Progress(w http.ResponseWriter, name string, times int, then func()) {
	for i := range times {
		Event(w, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"message":%q}}`,
			req.Params.Meta.Token, i+1, name))
		if then != nil {
			then()
		}
	}
}
