package compat

import (
	"fmt"
	"net/http"
	"strings"
)

// exchange is one request of the client and what it brings.
type exchange struct {
	*reply
	c        *client
	id       string
	before   []*message // notifications that came before the response
	response *message
}

// start sends a request and does not wait for its response.
func (c *client) start(method, params string) *exchange {
	c.t.Helper()
	c.nextID++
	id := fmt.Sprint(c.nextID)
	body := `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"`
	if params != "" {
		body += `,"params":` + params
	}
	return &exchange{reply: c.post(body + "}"), c: c, id: id}
}

// call sends a request, answers what the bridge asks meanwhile, and returns
// when the response is there.
func (c *client) call(method, params string) *exchange {
	c.t.Helper()
	x := c.start(method, params)
	x.finish()
	if x.response == nil {
		c.t.Fatalf("%s: HTTP %d without a response", method, x.status)
	}
	return x
}

// finish reads on to the end of the response.
func (x *exchange) finish() {
	x.c.t.Helper()
	for m := x.next(); m != nil; m = x.next() {
		switch {
		case x.response != nil:
			x.c.t.Errorf("C-11, D-I13: after the response came %s", m.Text)
		case m.isResponse():
			if m.ID != x.id {
				x.c.t.Errorf("B-29: the response to %s has the id %s", x.id, m.ID)
			}
			x.response = m
		case m.ID != "":
			x.c.respond(m)
		default:
			x.before = append(x.before, m)
		}
	}
}

// until returns the next message with a method.
func (x *exchange) until(method string) *message {
	x.c.t.Helper()
	for m := x.next(); m != nil; m = x.next() {
		if m.Method == method {
			return m
		}
	}
	x.c.t.Fatalf("the stream ended without %s", method)
	return nil
}

// notified returns the notifications of a method that came before the response.
func (x *exchange) notified(method string) (found []*message) {
	for _, m := range x.before {
		if m.Method == method {
			found = append(found, m)
		}
	}
	return found
}

// respond answers a server request, which must be one that this client can be
// asked (C-33).
func (c *client) respond(m *message) {
	c.t.Helper()
	c.asked = append(c.asked, m)
	answer := c.answers[m.Method]
	if answer == nil {
		c.t.Errorf("C-33: asked for what was not declared: %s", m.Text)
		c.notify(`{"jsonrpc":"2.0","id":` + m.ID + `,"error":{"code":-32601,"message":"no"}}`)
		return
	}
	c.answer(m, answer(string(m.Params)))
}

// answer posts the client's answer to a server request.
func (c *client) answer(m *message, text string) {
	c.t.Helper()
	kind := "result"
	if strings.HasPrefix(text, "!") {
		kind, text = "error", text[1:]
	}
	c.notify(`{"jsonrpc":"2.0","id":` + m.ID + `,"` + kind + `":` + text + `}`)
}

// listen opens the standalone stream.
func (c *client) listen() *exchange {
	c.t.Helper()
	r := c.send(http.MethodGet, "", nil)
	if r.status != http.StatusOK {
		c.t.Fatalf("GET: HTTP %d", r.status)
	}
	return &exchange{reply: r, c: c}
}
