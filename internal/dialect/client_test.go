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
	"github.com/mcpbridge/bridge/internal/testmode"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/sse"
	"github.com/mcpbridge/bridge/upstream/streamable"
)

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
		Upstream: streamable.Options{URL: srv.URL, Log: log, StandardTransport: testmode.StandardHTTP()},
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
	c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`).Body.Close()
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
	defer res.Body.Close()
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
		c.post(string(reply)).Body.Close()
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
