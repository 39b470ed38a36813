package stub

import (
	"hash/maphash"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/bridge/bench/scan"
	"github.com/mcpbridge/bridge/mcp"
)

const (
	serverInfo = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bench-stub","version":"1.0.0"}}`
	complete   = `"resultType":"complete",` + serverInfo
)

// Modern is a strict server of 2026-07-28. It keeps nothing between two
// requests of a call: what it needs to know is in the request state, which it
// signs.
type Modern struct {
	counters
	tools    int
	discover string
	list     string
	seed     maphash.Seed

	listens atomic.Int64
	mu      sync.Mutex
	wake    map[chan struct{}]struct{} // one per listen stream
}

// NewModern makes a server that offers the five kinds of tool, and echo tools
// up to the number of tools asked for.
func NewModern(tools int) *Modern {
	return &Modern{
		tools: tools,
		discover: `{` + complete + `,"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},` +
			`"instructions":"A benchmark server.","ttlMs":3600000,"cacheScope":"public"}`,
		list: `{` + complete + `,"tools":` + toolsJSON(tools) + `,"ttlMs":0,"cacheScope":"private"}`,
		seed: maphash.MakeSeed(),
		wake: map[chan struct{}]struct{}{},
	}
}

// ServeHTTP answers Path, PathChanged and PathStats.
func (m *Modern) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case Path:
		m.serve(w, r)
	case PathChanged:
		m.changed()
		w.WriteHeader(http.StatusNoContent)
	case PathStats:
		writeStats(w, m.Stats())
	default:
		http.NotFound(w, r)
	}
}

// Stats returns what the server saw so far.
func (m *Modern) Stats() Stats {
	s := Stats{Streams: m.listens.Load()}
	m.fill(&s)
	return s
}

func (m *Modern) serve(w http.ResponseWriter, r *http.Request) {
	b := getBuffer()
	defer b.free()
	if r.Method != http.MethodPost {
		m.violate("HTTP method " + r.Method)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if err := b.read(r); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	q, bad := parseModern(b.in, r.Header)
	if bad != nil {
		m.refuse(w, b, q.id, bad)
		return
	}
	switch q.method {
	case mcp.MethodToolsCall:
		m.call(w, b, &q)
	case mcp.MethodToolsList:
		b.out = append(append(appendResponse(b.out, q.id), m.list...), '}')
		writeJSON(w, http.StatusOK, b.out)
	case mcp.MethodDiscover:
		b.out = append(append(appendResponse(b.out, q.id), m.discover...), '}')
		writeJSON(w, http.StatusOK, b.out)
	case mcp.MethodListen:
		m.listen(w, r, b, &q)
	default:
		b.out = appendError(b.out, q.id, -32601, "method not found")
		writeJSON(w, http.StatusNotFound, b.out)
	}
}

// fault is why a request is refused.
type fault struct {
	code int
	text string
}

func (m *Modern) refuse(w http.ResponseWriter, b *buffer, id []byte, f *fault) {
	m.violate(f.text)
	b.out = appendError(b.out, id, f.code, f.text)
	writeJSON(w, http.StatusBadRequest, b.out)
}

func (m *Modern) call(w http.ResponseWriter, b *buffer, q *request) {
	m.calls.Add(1)
	name, _ := scan.Text(scan.Get(q.params, "name"))
	nonce, ok := scan.Text(scan.Path(q.params, "arguments", "n"))
	tool := string(name)
	if !ok || !known(tool, m.tools) {
		m.refuse(w, b, q.id, &fault{-32602, "unknown tool or no nonce"})
		return
	}
	switch n := Rounds(tool); {
	case n > 0:
		m.ask(w, b, q, tool, string(nonce), n)
	case tool == Steps:
		m.steps(w, b, q, string(nonce))
	default:
		m.finish(w, b, q, tool, string(nonce))
	}
}

func (m *Modern) finish(w http.ResponseWriter, b *buffer, q *request, tool, nonce string) {
	b.out = appendComplete(appendResponse(b.out, q.id), tool, nonce)
	writeJSON(w, http.StatusOK, b.out)
}

// appendComplete appends a complete tool result and closes the response.
func appendComplete(dst []byte, tool, nonce string) []byte {
	dst = appendContent(append(dst, '{'), tool, nonce)
	return append(dst, `,`+complete+`}}`...)
}

func (m *Modern) steps(w http.ResponseWriter, b *buffer, q *request, nonce string) {
	token := scan.Path(q.params, "_meta", "progressToken")
	f := stream(w)
	for step := 1; token != nil && step <= StepCount; step++ {
		b.out = endEvent(appendProgress(beginEvent(b.out[:0]), token, step))
		_, _ = w.Write(b.out)
		f.Flush()
	}
	b.out = endEvent(appendComplete(appendResponse(beginEvent(b.out[:0]), q.id), Steps, nonce))
	_, _ = w.Write(b.out)
}

// ask answers one round of an asking tool.
func (m *Modern) ask(w http.ResponseWriter, b *buffer, q *request, tool, nonce string, rounds int) {
	if !scan.Object(scan.Get(q.caps, "elicitation")) {
		m.refuse(w, b, q.id, &fault{mcp.CodeMissingCapability, "elicitation not declared"})
		return
	}
	round := 0
	if state := scan.Get(q.params, "requestState"); state != nil {
		asked, text := m.answered(q, state, tool, nonce)
		if text != "" {
			m.refuse(w, b, q.id, &fault{-32602, text})
			return
		}
		round = asked + 1
	} else if scan.Get(q.params, "inputResponses") != nil {
		m.refuse(w, b, q.id, &fault{-32602, "input responses without request state"})
		return
	}
	if round == rounds {
		m.finish(w, b, q, tool, nonce)
		return
	}
	m.questions.Add(1)
	b.out = append(appendResponse(b.out, q.id), `{"resultType":"input_required",`+serverInfo+`,"inputRequests":{"`+InputKey+`":{"method":"elicitation/create","params":`...)
	b.out = append(appendElicitation(b.out, nonce, round), `}},"requestState":"`...)
	b.out = append(m.appendState(b.out, q.id, tool, nonce, round), `"}}`...)
	writeJSON(w, http.StatusOK, b.out)
}

// answered checks a retry: the state is one this server issued for this very
// call, the id is a new one, and the only input response is the right answer.
func (m *Modern) answered(q *request, state []byte, tool, nonce string) (round int, bad string) {
	text, ok := scan.Text(state)
	if !ok {
		return 0, "request state is no string"
	}
	r, rest, _ := strings.Cut(string(text), ".")
	round, err := strconv.Atoi(r)
	idHash, _, ok := strings.Cut(rest, ".")
	if err != nil || !ok || round < 0 {
		return 0, "request state of another server"
	}
	if string(m.seal(nil, idHash, tool, nonce, round)) != string(text) {
		return 0, "request state forged or of another call"
	}
	if string(m.hash(nil, q.id)) == idHash {
		return 0, "retry under the id of the round before"
	}
	responses := scan.Get(q.params, "inputResponses")
	if n := scan.Members(responses); n != 1 {
		return 0, "not exactly one input response"
	}
	answer := scan.Get(responses, InputKey)
	want := AppendAnswer(nil, nonce, round)
	if !scan.Is(scan.Get(answer, "action"), "accept") || !scan.Is(scan.Path(answer, "content", "v"), string(want)) {
		return 0, "wrong answer"
	}
	return round, ""
}

// appendState appends the text of a round's request state:
// round "." hash of the request's id "." seal.
func (m *Modern) appendState(dst, id []byte, tool, nonce string, round int) []byte {
	return m.seal(dst, string(m.hash(nil, id)), tool, nonce, round)
}

func (m *Modern) seal(dst []byte, idHash, tool, nonce string, round int) []byte {
	start := len(dst)
	dst = append(strconv.AppendInt(dst, int64(round), 10), '.')
	dst = append(append(dst, idHash...), '.')
	var h maphash.Hash
	h.SetSeed(m.seed)
	_, _ = h.Write(dst[start:])
	_, _ = h.WriteString(tool)
	_ = h.WriteByte(0)
	_, _ = h.WriteString(nonce)
	return strconv.AppendUint(dst, h.Sum64(), 16)
}

func (m *Modern) hash(dst, b []byte) []byte {
	return strconv.AppendUint(dst, maphash.Bytes(m.seed, b), 16)
}
