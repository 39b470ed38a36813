package dialect_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/bridge"
	"github.com/mcpbridge/bridge/internal/dialect"
	"github.com/mcpbridge/bridge/internal/mount"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/sse"
	"github.com/mcpbridge/bridge/upstream"
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

// client is a legacy client that writes its own HTTP.
type client struct {
	t       *testing.T
	url     string
	http    *http.Client
	session string
	log     buffer // of the bridge
	opened  jsonrpc.Message
	heard   chan string // gets the method of every notification; nil: nobody waits
}

const declared = `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{"listChanged":true}}`

// connect mounts a bridge before srv and opens a session of 2025-11-25.
func connect(t *testing.T, srv *server, opt dialect.Options) *client {
	t.Helper()
	c := mounted(t, srv, opt)
	c.initialize()
	if c.opened.Error != nil {
		t.Fatalf("initialize failed: %v", c.opened.Error)
	}
	return c
}

func mounted(t *testing.T, srv *server, opt dialect.Options) *client {
	t.Helper()
	c := &client{t: t}
	log := zerolog.New(&c.log)
	m, err := mount.New(mount.Options{
		Upstream: upstream.HTTPOptions{URL: srv.URL, Log: log},
		Draft:    dialect.New(opt),
		Bridge:   bridge.Options{Log: log},
	})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(m)
	transport := &http.Transport{}
	c.url, c.http = front.URL, &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		m.Close()
		front.Close()
	})
	return c
}

func (c *client) initialize() {
	c.opened = c.call("initialize", `{"protocolVersion":"2025-11-25","capabilities":`+declared+`,"clientInfo":{"name":"old","version":"1"}}`, nil).response
	c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`).Body.Close() //nolint:errcheck // it is empty
}

func (c *client) post(message string) *http.Response {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url, strings.NewReader(message))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	res, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		c.session = id
	}
	return res
}

// exchange is what one request brought the client.
type exchange struct {
	response jsonrpc.Message
	asked    []jsonrpc.Message // server requests
	told     []jsonrpc.Message // notifications
}

func (x *exchange) names() string {
	var names []string
	for _, m := range x.asked {
		names = append(names, m.Method)
	}
	return strings.Join(names, " ")
}

// answers gives a client's answer to a server request.
type answers func(asked jsonrpc.Message) string

// agree accepts every form, names one root and says yes to every prompt.
func agree(asked jsonrpc.Message) string {
	switch asked.Method {
	case mcp.MethodRootsList:
		return `{"roots":[{"uri":"file:///w"}]}`
	case mcp.MethodSamplingCreateMessage:
		return `{"role":"assistant","model":"m","content":{"type":"text","text":"yes"}}`
	}
	if rawjson.Has(asked.Params, "url") {
		return `{"action":"accept"}`
	}
	return `{"action":"accept","content":{"name":"Ada"}}`
}

// call sends a request and answers what it is asked until the response comes.
func (c *client) call(method, params string, answer answers) *exchange {
	c.t.Helper()
	res := c.post(`{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":` + params + `}`)
	defer res.Body.Close() //nolint:errcheck // read to the end
	x := &exchange{}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		body, err := io.ReadAll(res.Body)
		if err != nil {
			c.t.Fatal(err)
		}
		x.response = c.parse(body)
		return x
	}
	events := sse.NewDecoder(res.Body, 1<<20)
	for x.response.ID == "" {
		event, err := events.Next()
		if err != nil {
			c.t.Fatalf("the stream ended without a response: %v", err)
		}
		if len(event.Data) > 0 {
			c.handle(x, bytes.Clone(event.Data), answer)
		}
	}
	return x
}

func (c *client) handle(x *exchange, data []byte, answer answers) {
	c.t.Helper()
	switch msg := c.parse(data); msg.Kind() {
	case jsonrpc.Response:
		x.response = msg
	case jsonrpc.Request:
		x.asked = append(x.asked, msg)
		reply := jsonrpc.AppendResult(nil, msg.ID, []byte(answer(msg)))
		c.post(string(reply)).Body.Close() //nolint:errcheck // it is empty
	default:
		x.told = append(x.told, msg)
		if c.heard != nil {
			c.heard <- msg.Method
		}
	}
}

// parse holds every message to P-4: no client of an older revision ever sees a
// member of the new one, whatever its server's draft called it.
func (c *client) parse(data []byte) jsonrpc.Message {
	c.t.Helper()
	msg, err := jsonrpc.Parse(data)
	if err != nil {
		c.t.Fatalf("the bridge sent %s: %v", data, err)
	}
	for _, leak := range []string{"resultType", "result_type", "inputRequests", "requestState", "ttlMs", "-32022", "-32021", "-32020"} {
		if rawjson.Has(msg.Result, leak) || msg.Error != nil && fmt.Sprint(msg.Error.Code) == leak {
			c.t.Errorf("P-4: %s leaked: %s", leak, data)
		}
	}
	return msg
}

// want compares a text with what was expected of it.
func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %s, want %s", what, got, want)
	}
}

// get opens the stream of what belongs to no call.
func (c *client) get() *http.Response {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.url, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Mcp-Session-Id", c.session)
	res, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	return res
}

// buffer is a log that may be read while it is written.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
