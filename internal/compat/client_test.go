package compat

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/mcp"
)

// client is a legacy client of Streamable HTTP that shows its test everything
// that comes over the wire, and judges every message by the rules that hold for
// all.
type client struct {
	t       *testing.T
	url     string
	version mcp.Version
	session string
	opened  *message    // the answer to initialize
	header  http.Header // sent with every request
	nextID  int
	http    *http.Client

	// answers gives the client's answers to server requests by method: the
	// result, or an error when it begins with "!".
	answers map[string]func(params string) string
	// asked lists the server requests in the order they came.
	asked []*message
}

// message is one JSON-RPC message that the client got.
type message struct {
	EventID string
	Text    string
	ID      string // raw
	Method  string
	Params  json.RawMessage
	Result  json.RawMessage
	Error   *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
}

func (m *message) isResponse() bool { return m.Method == "" }

// reply is the bridge's HTTP response to one request.
type reply struct {
	t      *testing.T
	status int
	header http.Header
	body   *bufio.Reader
	stop   func()
	json   []*message // of a JSON body; nil for streams
	primed string     // id of the priming event, if there was one
}

// send makes one HTTP request of the session. The response is judged and, when
// it is JSON, read.
func (c *client) send(method, body string, header http.Header) *reply {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	req, err := http.NewRequestWithContext(ctx, method, c.url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
		if c.version.AtLeast(mcp.V20250618) {
			req.Header.Set("Mcp-Protocol-Version", string(c.version))
		}
	}
	for _, h := range []http.Header{c.header, header} {
		for name, values := range h {
			req.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	res, err := c.http.Do(req)
	if err != nil {
		cancel()
		c.t.Fatalf("%s %s: %v", method, body, err)
	}
	if res.Header.Get("Mcp-Session-Id") == strayID {
		c.t.Errorf("A-32: the server's session id came down")
	}
	r := &reply{t: c.t, status: res.StatusCode, header: res.Header, body: bufio.NewReader(res.Body)}
	r.stop = func() { cancel(); res.Body.Close() }
	c.t.Cleanup(r.stop)
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		r.readJSON()
		r.stop()
	}
	return r
}

func (r *reply) readJSON() {
	r.t.Helper()
	text, err := io.ReadAll(r.body)
	if err != nil {
		r.t.Fatal(err)
	}
	r.json = []*message{}
	if bytes.HasPrefix(text, []byte("[")) {
		var parts []json.RawMessage
		if err := json.Unmarshal(text, &parts); err != nil {
			r.t.Fatalf("%v: %s", err, text)
		}
		for _, part := range parts {
			r.json = append(r.json, parse(r.t, string(part)))
		}
		return
	}
	r.json = append(r.json, parse(r.t, string(text)))
}

// next returns the next message of the response, nil at its end.
func (r *reply) next() *message {
	r.t.Helper()
	if r.json != nil {
		if len(r.json) == 0 {
			return nil
		}
		m := r.json[0]
		r.json = r.json[1:]
		return m
	}
	for {
		id, data, err := r.event()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			r.t.Fatalf("reading the stream: %v", err)
		case data == "":
			r.primed = id
			continue
		}
		m := parse(r.t, data)
		m.EventID = id
		return m
	}
}

// event reads one server-sent event; comments are skipped.
func (r *reply) event() (id, data string, err error) {
	seen := false
	for {
		line, err := r.body.ReadString('\n')
		if err != nil {
			return "", "", err
		}
		line = strings.TrimRight(line, "\r\n")
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "":
			if line == "" && seen {
				return id, data, nil
			}
		case "id":
			id, seen = value, true
		case "data":
			data, seen = data+value, true
		}
	}
}

// parse reads a message and judges it.
func parse(t *testing.T, text string) *message {
	t.Helper()
	m := &message{Text: text}
	var envelope struct {
		JSONRPC string
		ID      json.RawMessage
		Method  string
		Params  json.RawMessage
		Result  json.RawMessage
		Error   *struct {
			Code    int
			Message string
			Data    json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(text), &envelope); err != nil || envelope.JSONRPC != "2.0" {
		t.Fatalf("no JSON-RPC message (%v): %s", err, text)
	}
	m.ID, m.Method, m.Params = string(envelope.ID), envelope.Method, envelope.Params
	m.Result, m.Error = envelope.Result, envelope.Error
	for _, fault := range leaks(m) {
		t.Errorf("%s: %s", fault, text)
	}
	return m
}

// leaks returns what of a message belongs to the modern era (P-4). Payloads of
// this package's tests never use those names for anything else.
func leaks(m *message) (faults []string) {
	for _, name := range []string{"resultType", "inputRequests", "requestState", "inputResponses", "ttlMs", "cacheScope"} {
		if member(m.Result, name) != "" || member(m.Params, name) != "" {
			faults = append(faults, "P-4: "+name+" leaked down")
		}
	}
	for _, name := range []string{"serverInfo", "subscriptionId", "protocolVersion", "clientInfo", "clientCapabilities", "logLevel"} {
		if member(m.Result, "_meta", metaPrefix+name) != "" || member(m.Params, "_meta", metaPrefix+name) != "" {
			faults = append(faults, "P-4: _meta "+name+" leaked down")
		}
	}
	if m.Error != nil && m.Error.Code <= -32020 && m.Error.Code >= -32099 && m.Error.Code != -32042 {
		faults = append(faults, fmt.Sprintf("F-2: code %d leaked down", m.Error.Code))
	}
	return faults
}

// post sends one message of the client.
func (c *client) post(body string) *reply {
	c.t.Helper()
	return c.send(http.MethodPost, body, nil)
}

// notify posts a message that gets no answer (E-3).
func (c *client) notify(body string) {
	c.t.Helper()
	if r := c.post(body); r.status != http.StatusAccepted {
		c.t.Errorf("E-3: HTTP %d for %s", r.status, body)
	}
}

// initialize opens the session.
func (c *client) initialize(capabilities string) *message {
	c.t.Helper()
	r := c.post(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"` + string(c.version) +
		`","capabilities":` + capabilities + `,"clientInfo":{"name":"old","version":"1"}}}`)
	m := r.next()
	if m == nil || m.Result == nil {
		c.t.Fatalf("initialize: HTTP %d, %+v", r.status, m)
	}
	c.session = r.header.Get("Mcp-Session-Id")
	c.notify(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.opened = m
	return m
}
