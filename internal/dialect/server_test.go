package dialect_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// seen is one request that the server got.
type seen struct {
	header http.Header
	msg    jsonrpc.Message
}

// member digs a raw member out of the params.
func (s *seen) member(path ...string) string {
	v := s.msg.Params
	for _, name := range path {
		v = rawjson.Get(v, name)
	}
	return string(v)
}

// reply answers one request; the test fails in its goroutine when it cannot.
type reply func(w http.ResponseWriter, r *http.Request, s *seen)

// result answers with a result.
func result(raw string) reply {
	return func(w http.ResponseWriter, _ *http.Request, s *seen) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(jsonrpc.AppendResult(nil, s.msg.ID, []byte(raw)))
	}
}

// refuse answers with an error; data may be empty.
func refuse(status, code int, message, data string) reply {
	return func(w http.ResponseWriter, _ *http.Request, s *seen) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(jsonrpc.AppendError(nil, s.msg.ID, &jsonrpc.Error{Code: code, Message: message, Data: []byte(data)}))
	}
}

// script says what a server answers: the n-th request of a method gets the n-th
// reply, and the last one for ever. What it does not name is not found.
type script map[string][]reply

// server is a scripted server of some draft.
type server struct {
	*httptest.Server
	script script

	mu       sync.Mutex
	requests []*seen
}

func newServer(t *testing.T, s script) *server {
	t.Helper()
	srv := &server{script: s}
	srv.Server = httptest.NewServer(srv)
	t.Cleanup(srv.Close)
	return srv
}

func (srv *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	msg, err := jsonrpc.Parse(body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s := &seen{r.Header.Clone(), msg}
	srv.mu.Lock()
	n := len(srv.got(msg.Method))
	srv.requests = append(srv.requests, s)
	srv.mu.Unlock()
	answer := refuse(404, jsonrpc.CodeMethodNotFound, "method not found", "")
	if steps := srv.script[msg.Method]; len(steps) > 0 {
		answer = steps[min(n, len(steps)-1)]
	}
	answer(w, r, s)
}

// got returns the requests of a method. The caller holds mu.
func (srv *server) got(method string) (found []*seen) {
	for _, s := range srv.requests {
		if s.msg.Method == method {
			found = append(found, s)
		}
	}
	return found
}

// all returns the requests of a method that came so far.
func (srv *server) all(method string) []*seen {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return srv.got(method)
}

// methods names what came after the session had begun, in order.
func (srv *server) methods() string {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	var names []string
	for _, s := range srv.requests {
		if m := s.msg.Method; m != mcp.MethodDiscover && m != mcp.MethodListen {
			names = append(names, m)
		}
	}
	return strings.Join(names, " ")
}

// final is what a server of 2026-07-28 says of itself.
const final = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}`

// discovered is what a server of a draft says of itself.
func discovered(version, capabilities string) reply {
	return result(`{"supportedVersions":["` + version + `"],"capabilities":` + capabilities +
		`,"serverInfo":{"name":"early","version":"0.1"}}`)
}

// early is a server that says that it speaks the draft of June.
var early = discovered("2026-06-30", `{"tools":{}}`)
