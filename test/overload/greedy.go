package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
)

// flood is a way to make the bridge hold something. It goes on until ctx ends.
type flood struct {
	name string
	run  func(ctx context.Context, c *client)

	settings []string // of the bridge, besides limits.memory
	legacy   bool     // the server is of the clients' own era
}

const (
	kib = 1 << 10
	mib = 1 << 20
)

// floods are the ways, one for each kind of thing that is held.
var floods = []flood{
	{name: "sessions that say much of themselves", run: func(ctx context.Context, c *client) {
		c.tally.note(c.open(ctx, 60*kib))
	}},
	{name: "calls that wait, with large params and state", run: ask},
	{name: "large bodies and answers", run: large},
	{name: "answers that nobody reads", run: unread},
	{name: "answers kept for clients that do not come back", run: leave, settings: []string{"--legacy.always-stream", "on", "--limits.event-bytes", "8MiB"}},
	{name: "messages over WebSocket that do not end", run: webSocket},
	{name: "relayed answers over WebSocket that do not end", run: stalled, legacy: true},
	{name: "bodies that do not end", run: func(ctx context.Context, c *client) {
		raw(ctx, c, "Content-Length: 4000000\r\n", strings.Repeat("b", 3*mib))
	}},
	{name: "bodies of unknown length that do not end", run: func(ctx context.Context, c *client) {
		raw(ctx, c, "Transfer-Encoding: chunked\r\n", fmt.Sprintf("%x\r\n%s\r\n", 3*mib, strings.Repeat("b", 3*mib)))
	}},
	{name: "arrays of many messages", run: func(ctx context.Context, c *client) {
		resp, err := c.send(ctx, "["+strings.Repeat("1,", mib)+"1]")
		if err != nil {
			c.tally.note("lost")
			return
		}
		c.tally.note(resp.Status[4:])
		_ = resp.Body.Close()
	}},
}

// ask makes a call that waits for its client, and leaves it there.
func ask(ctx context.Context, c *client) {
	c.begin(ctx)
	resp, err := c.send(ctx, toolCall("ask", 512*kib, mib))
	if err != nil {
		c.tally.note("lost")
		return
	}
	c.tally.note(resp.Status[4:])
	_, _ = bufio.NewReader(resp.Body).ReadString('\n')
	_ = resp.Body.Close()
}

// large makes a call with a large body and a large answer.
func large(ctx context.Context, c *client) {
	c.begin(ctx)
	c.tally.note(c.call(ctx, "large", 4*mib, 2*mib))
}

// leave has an answer written, and is gone before it is there.
func leave(ctx context.Context, c *client) {
	c.begin(ctx)
	resp, err := c.send(ctx, toolCall("large", 4*mib, 1))
	if err != nil {
		c.tally.note("lost")
		return
	}
	c.tally.note(resp.Status[4:])
	_, _ = bufio.NewReader(resp.Body).ReadString('\n') // the id of an event, so that it could come back
	_ = resp.Body.Close()
}

const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: mcp\r\n"

// webSocket sends most of a message over a WebSocket.
func webSocket(ctx context.Context, c *client) {
	const frame = "\x81\xff\x00\x00\x00\x00\x00\x3d\x09\x00" + "\x00\x00\x00\x00" // a text of 4 000 000 bytes, masked with nothing
	speak(ctx, c, "GET", upgrade, "", frame+strings.Repeat("b", 3*mib))
}

// stalled makes calls over a WebSocket whose answers begin, and do not end.
func stalled(ctx context.Context, c *client) {
	frame := func(text string) string { // masked with nothing
		return "\x81\xfe" + string([]byte{byte(len(text) >> 8), byte(len(text))}) + "\x00\x00\x00\x00" + text
	}
	text := frame(`{"jsonrpc":"2.0","id":"0","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"` + strings.Repeat("n", 100) + `","version":"1"}}}`)
	for id := range 20 {
		text += frame(strings.Replace(toolCall("stall", 8*mib, 100), `"id":1`, fmt.Sprintf(`"id":%d`, id+1), 1))
	}
	speak(ctx, c, "GET", upgrade, "", text)
}

// unread has an answer written that is not read until ctx ends.
func unread(ctx context.Context, c *client) {
	c.begin(ctx)
	body := toolCall("large", 8*mib, 1)
	raw(ctx, c, fmt.Sprintf("Content-Length: %d\r\n", len(body)), body)
}

// raw sends a request, and lets the connection stand until ctx ends or the bridge has
// had enough.
func raw(ctx context.Context, c *client, header, body string) {
	speak(ctx, c, "POST", "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"+header, body, "")
}

// speak is raw for any method; then is what it sends once there is a response.
func speak(ctx context.Context, c *client, method, header, body, then string) {
	at, _ := url.Parse(c.url)
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at.Host)
	if err != nil {
		c.tally.note("lost")
		return
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	head := method + " " + at.Path + " HTTP/1.1\r\nHost: " + at.Host + "\r\n" + header
	for name, values := range c.who {
		head += name + ": " + values[0] + "\r\n"
	}
	if c.session != "" {
		head += "Mcp-Session-Id: " + c.session + "\r\n"
	}
	_, _ = conn.Write([]byte(head + "\r\n" + body))
	status := make([]byte, 12)
	if _, err := conn.Read(status); err != nil {
		c.tally.note("cut off")
		return
	}
	c.tally.note("status " + string(status[9:]))
	_, _ = conn.Write([]byte(then))
	<-ctx.Done() // or the rest of the answer, which is left unread
}

// each has greedy clients make a flood, this many at a time.
func (f *flood) each(ctx context.Context, n int, newClient func() *client) {
	var greedy sync.WaitGroup
	for range n {
		greedy.Go(func() {
			for ctx.Err() == nil {
				c := newClient()
				for range 50 {
					if ctx.Err() == nil {
						f.run(ctx, c)
					}
				}
				c.http.CloseIdleConnections()
			}
		})
	}
	greedy.Wait()
}
