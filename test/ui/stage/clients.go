package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// client is a legacy client that does no more than it must.
type client struct {
	url, session string
	next         int
}

// open begins a session.
func open(url, name string) (*client, error) {
	c := &client{url: url}
	resp, err := c.post(context.Background(), `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18",`+
		`"capabilities":{"elicitation":{}},"clientInfo":{"name":"`+name+`","version":"1.0"}}}`)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if c.session = resp.Header.Get("Mcp-Session-Id"); c.session == "" {
		return nil, errors.New("no session: " + resp.Status)
	}
	return c, nil
}

func (c *client) post(ctx context.Context, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	return http.DefaultClient.Do(req)
}

// call calls a tool with an argument that nobody may ever see, and leaves the
// response open.
func (c *client) call(ctx context.Context, tool string) (*http.Response, error) {
	c.next++
	return c.post(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"card":"a-secret-of-the-client"}}}`, c.next, tool))
}

var questionID = regexp.MustCompile(`"id":("b-[^"]+")`)

// asked reads a response until it brings a question, and returns its id.
func asked(resp *http.Response) (string, error) {
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if found := questionID.FindStringSubmatch(lines.Text()); found != nil {
			return found[1], nil
		}
	}
	return "", errors.New("no question came")
}

// answer answers a question.
func (c *client) answer(id string) error {
	resp, err := c.post(context.Background(), `{"jsonrpc":"2.0","id":`+id+`,"result":{"action":"accept","content":{"city":"a-secret-of-the-person"}}}`)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// play brings every reason why a call hangs on the stage.
func play(url string, idle int) error {
	for _, scene := range []func(string) error{person, mute, silent, circle, lost, excluded} {
		if err := scene(url); err != nil {
			return err
		}
	}
	for i := range idle {
		if _, err := open(url, fmt.Sprintf("idle-%05d", i)); err != nil {
			return err
		}
	}
	return nil
}

// person: a client that has answered before, whose person now thinks.
func person(url string) error {
	c, err := open(url, "person-thinks")
	if err != nil {
		return err
	}
	resp, err := c.call(context.Background(), "book_flight") //nolint:bodyclose // it stays open: that is the scene
	if err != nil {
		return err
	}
	id, err := asked(resp)
	if err != nil {
		return err
	}
	if err := c.answer(id); err != nil {
		return err
	}
	if resp, err = c.call(context.Background(), "book_flight"); err != nil { //nolint:bodyclose // the same
		return err
	}
	_, err = asked(resp)
	return err
}

// mute: a client that declared that it can be asked, and shows nothing.
func mute(url string) error { return leave(url, "never-answers", "book_flight") }

// silent: a server that does not answer.
func silent(url string) error { return leave(url, "server-silent", "slow_report") }

// circle: a server that only wants to be called again.
func circle(url string) error { return leave(url, "goes-in-circles", "busy_queue") }

// leave makes a call and waits for nothing.
func leave(url, name, tool string) error {
	c, err := open(url, name)
	if err != nil {
		return err
	}
	go func() { _, _ = c.call(context.Background(), tool) }() //nolint:bodyclose // the same
	return nil
}

// lost: a client whose connection breaks after the question came.
func lost(url string) error {
	c, err := open(url, "lost-its-stream")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	resp, err := c.call(ctx, "book_flight") //nolint:bodyclose // ctx ends it
	if err != nil {
		return err
	}
	_, err = asked(resp)
	return err
}

// excluded: a client that looks for a tool which it is not offered.
func excluded(url string) error {
	c, err := open(url, "misses-a-tool")
	if err != nil {
		return err
	}
	resp, err := c.post(context.Background(), `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
