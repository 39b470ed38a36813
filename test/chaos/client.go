package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/mcpbridge/bridge/test/calls"
)

// client is a legacy client of 2025-11-25 over Streamable HTTP with one session.
type client struct {
	url     string
	http    *http.Client
	ledger  *ledger
	random  *rand.Rand
	patient time.Duration // how long a call may take
	session string
	lastID  int
}

var errStatus = errors.New("status")

// open begins a session.
func (c *client) open(ctx context.Context) error {
	c.session = ""
	resp, err := c.post(ctx, calls.Initialize("chaos"))
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if c.session = resp.Header.Get("Mcp-Session-Id"); c.session == "" {
		return errRefused // with 200: the server is away
	}
	resp, err = c.post(ctx, calls.Initialized)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

var errRefused = errors.New("initialize was answered with an error")

// shut ends the session.
func (c *client) shut(ctx context.Context) {
	if resp, err := c.do(ctx, http.MethodDelete, "", ""); err == nil {
		_ = resp.Body.Close()
	}
}

func (c *client) post(ctx context.Context, body string) (*http.Response, error) {
	return c.do(ctx, http.MethodPost, body, "")
}

func (c *client) do(ctx context.Context, method, body, last string) (*http.Response, error) {
	req, err := calls.NewRequest(ctx, method, c.url, c.session, last, body)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%w %d: %s", errStatus, resp.StatusCode, text)
	}
	return resp, nil
}

// call makes one call and writes its end into the ledger.
func (c *client) call(ctx context.Context, p *plan) {
	ctx, stop := context.WithTimeout(ctx, c.patient)
	defer stop()
	c.lastID++
	x := &exchange{client: c, plan: p, id: fmt.Sprint(c.lastID)}
	if p.habit == habitCut {
		x.cuts = 1 + c.random.IntN(3)
	}
	how, reason := x.run(ctx)
	if ctx.Err() != nil && how != endResult {
		how = endHung
	}
	c.ledger.end(p, how, reason)
}
