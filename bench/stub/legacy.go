package stub

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/bridge/bench/scan"
	"github.com/mcpbridge/bridge/mcp"
)

// Legacy is a server of 2025-11-25 with the tools of Modern. It asks its
// questions on the response stream of the call, and therefore has to hold the
// call, its stream and its session in one process.
type Legacy struct {
	counters
	tools      int
	initialize string
	list       string
	nextAsk    atomic.Int64
	held       atomic.Int64
	streams    atomic.Int64

	mu       sync.RWMutex
	sessions map[string]*session
}

// session is one legacy session.
type session struct {
	mu      sync.Mutex
	pending map[string]chan []byte // by raw id of the server request
	wake    chan struct{}          // the GET stream; nil when there is none
}

// NewLegacy makes a server with the tools of NewModern(tools).
func NewLegacy(tools int) *Legacy {
	return &Legacy{
		tools: tools,
		initialize: `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},` +
			`"serverInfo":{"name":"bench-stub","version":"1.0.0"},"instructions":"A benchmark server."}`,
		list:     `{"tools":` + toolsJSON(tools) + `}`,
		sessions: map[string]*session{},
	}
}

// ServeHTTP answers Path, PathChanged and PathStats.
func (l *Legacy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case Path:
		l.serve(w, r)
	case PathChanged:
		l.changed()
		w.WriteHeader(http.StatusNoContent)
	case PathStats:
		s := Stats{Held: l.held.Load(), Streams: l.streams.Load()}
		l.mu.RLock()
		s.Sessions = int64(len(l.sessions))
		l.mu.RUnlock()
		l.fill(&s)
		writeStats(w, s)
	default:
		http.NotFound(w, r)
	}
}

func (l *Legacy) serve(w http.ResponseWriter, r *http.Request) {
	id := one(r.Header, mcp.HeaderSessionID)
	switch r.Method {
	case http.MethodPost:
		l.post(w, r, id)
	case http.MethodGet:
		l.get(w, r, id)
	case http.MethodDelete:
		l.mu.Lock()
		delete(l.sessions, id)
		l.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (l *Legacy) session(id string) *session {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.sessions[id]
}

func (l *Legacy) post(w http.ResponseWriter, r *http.Request, sid string) {
	b := getBuffer()
	defer b.free()
	if err := b.read(r); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	id, params := scan.Get(b.in, "id"), scan.Get(b.in, "params")
	method, isCall := scan.Text(scan.Get(b.in, "method"))
	s := l.session(sid)
	accept := one(r.Header, "Accept")
	switch {
	case string(method) == mcp.MethodInitialize:
		l.open(w, b, id)
	case s == nil:
		l.violate("unknown session")
		w.WriteHeader(http.StatusNotFound)
	case !strings.Contains(accept, "application/json") || !strings.Contains(accept, "text/event-stream"):
		l.violate("accept")
		w.WriteHeader(http.StatusNotAcceptable)
	case !isCall:
		s.answer(id, b.in)
		w.WriteHeader(http.StatusAccepted)
	case id == nil:
		w.WriteHeader(http.StatusAccepted)
	default:
		l.request(w, r, b, s, string(method), id, params)
	}
}

func (l *Legacy) request(w http.ResponseWriter, r *http.Request, b *buffer, s *session, method string, id, params []byte) {
	switch method {
	case mcp.MethodToolsCall:
		l.call(w, r, b, s, id, params)
	case mcp.MethodToolsList:
		b.out = append(append(appendResponse(b.out, id), l.list...), '}')
		writeJSON(w, http.StatusOK, b.out)
	case mcp.MethodPing:
		b.out = append(appendResponse(b.out, id), `{}}`...)
		writeJSON(w, http.StatusOK, b.out)
	default:
		b.out = appendError(b.out, id, -32601, "method not found")
		writeJSON(w, http.StatusOK, b.out)
	}
}

func (l *Legacy) open(w http.ResponseWriter, b *buffer, id []byte) {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails; see crypto/rand
	sid := hex.EncodeToString(raw[:])
	l.mu.Lock()
	l.sessions[sid] = &session{}
	l.mu.Unlock()
	w.Header()[mcp.HeaderSessionID] = []string{sid}
	b.out = append(append(appendResponse(b.out, id), l.initialize...), '}')
	writeJSON(w, http.StatusOK, b.out)
}

func (l *Legacy) call(w http.ResponseWriter, r *http.Request, b *buffer, s *session, id, params []byte) {
	l.calls.Add(1)
	name, _ := scan.Text(scan.Get(params, "name"))
	raw, ok := scan.Text(scan.Path(params, "arguments", "n"))
	tool, nonce := string(name), string(raw)
	switch {
	case !ok || !known(tool, l.tools):
		l.violate("unknown tool or no nonce")
		b.out = appendError(b.out, id, -32602, "unknown tool or no nonce")
		writeJSON(w, http.StatusOK, b.out)
	case Rounds(tool) > 0:
		l.ask(w, r, b, s, id, tool, nonce)
	case tool == Steps:
		l.steps(w, b, id, scan.Path(params, "_meta", "progressToken"), nonce)
	default:
		b.out = appendPlain(appendResponse(b.out, id), tool, nonce)
		writeJSON(w, http.StatusOK, b.out)
	}
}

// appendPlain appends a tool result and closes the response.
func appendPlain(dst []byte, tool, nonce string) []byte {
	dst = appendContent(append(dst, '{'), tool, nonce)
	return append(dst, `}}`...)
}

func (l *Legacy) steps(w http.ResponseWriter, b *buffer, id, token []byte, nonce string) {
	f := stream(w)
	for step := 1; token != nil && step <= StepCount; step++ {
		b.out = endEvent(appendProgress(beginEvent(b.out[:0]), token, step))
		_, _ = w.Write(b.out)
		f.Flush()
	}
	b.out = endEvent(appendPlain(appendResponse(beginEvent(b.out[:0]), id), Steps, nonce))
	_, _ = w.Write(b.out)
}

// ask sends every question on the call's stream and waits for each answer.
func (l *Legacy) ask(w http.ResponseWriter, r *http.Request, b *buffer, s *session, id []byte, tool, nonce string) {
	l.held.Add(1)
	defer l.held.Add(-1)
	f := stream(w)
	for round := range Rounds(tool) {
		l.questions.Add(1)
		ask, answer := strconv.FormatInt(l.nextAsk.Add(1), 10), make(chan []byte, 1)
		s.expect(ask, answer)
		b.out = append(append(beginEvent(b.out[:0]), `{"jsonrpc":"2.0","id":`...), ask...)
		b.out = append(b.out, `,"method":"elicitation/create","params":`...)
		b.out = endEvent(append(appendElicitation(b.out, nonce, round), '}'))
		_, _ = w.Write(b.out)
		f.Flush()
		select {
		case <-r.Context().Done():
			s.forget(ask)
			return
		case got := <-answer:
			if !scan.Is(got, string(AppendAnswer(nil, nonce, round))) {
				l.violate("wrong answer")
				return
			}
		}
	}
	b.out = endEvent(appendPlain(appendResponse(beginEvent(b.out[:0]), id), tool, nonce))
	_, _ = w.Write(b.out)
}

func (s *session) expect(ask string, answer chan []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		s.pending = map[string]chan []byte{}
	}
	s.pending[ask] = answer
}

func (s *session) forget(ask string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, ask)
}

// answer hands the accepted value of a client's response to the waiting call;
// unknown ids are ignored.
func (s *session) answer(id, body []byte) {
	s.mu.Lock()
	ch := s.pending[string(id)]
	delete(s.pending, string(id))
	s.mu.Unlock()
	if ch == nil {
		return
	}
	var value []byte
	if scan.Is(scan.Path(body, "result", "action"), "accept") {
		value = append(value, scan.Path(body, "result", "content", "v")...)
	}
	ch <- value
}
