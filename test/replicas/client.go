//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/test/calls"
)

// client is a legacy client of 2025-11-25 over Streamable HTTP with one session. Each
// request may go to any of urls.
type client struct {
	urls    []string
	http    *http.Client
	ledger  *ledger
	random  *rand.Rand
	patient time.Duration // how long a call may take
	session string
	lastID  int
}

// statusError is a response that is none of the protocol's.
type statusError struct {
	status int
	again  bool // nothing was done, and the request may be repeated
	text   string
}

func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.text) }

// open begins a session.
func (c *client) open(ctx context.Context) error {
	c.session = ""
	resp, err := c.repeat(ctx, http.MethodPost, calls.Initialize("replicas"), "")
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if c.session = resp.Header.Get("Mcp-Session-Id"); c.session == "" || err != nil {
		return errors.New("initialize was answered with an error")
	}
	return c.tell(ctx, calls.Initialized)
}

// tell sends a message that has no answer, as often as it takes.
func (c *client) tell(ctx context.Context, body string) error {
	resp, err := c.repeat(ctx, http.MethodPost, body, "")
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// shut ends the session, and looks whether it ended everywhere.
func (c *client) shut(ctx context.Context) {
	resp, err := c.repeat(ctx, http.MethodDelete, "", "")
	if err != nil {
		c.judgeShut(err)
		return
	}
	_ = resp.Body.Close()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for gone, looks := 0, 0; gone < 6; looks++ {
		resp, err := c.repeat(ctx, http.MethodPost, `{"jsonrpc":"2.0","id":"after","method":"tools/list"}`, "")
		var status *statusError
		switch {
		case errors.As(err, &status) && status.status == http.StatusNotFound:
			gone++
		case err != nil:
			return
		default:
			_ = resp.Body.Close()
			if gone = 0; looks > 300 {
				c.ledger.lives("session " + c.session)
				return
			}
		}
		<-look.C
	}
}

// judgeShut says what it means when a session cannot be ended: that it is gone may be the
// answer to a repeated request.
func (c *client) judgeShut(err error) {
	var status *statusError
	if errors.As(err, &status) && status.status != http.StatusNotFound {
		c.ledger.lives("session " + c.session + ": " + err.Error())
	}
}

// repeat sends a request, which may be repeated, until somebody has taken it.
func (c *client) repeat(ctx context.Context, method, body, last string) (*http.Response, error) {
	for {
		resp, err := c.do(ctx, method, body, last)
		if err == nil || final(err) || ctx.Err() != nil {
			return resp, err
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// final reports whether repeating a request that may be repeated is of no use.
func final(err error) bool {
	var status *statusError
	return errors.As(err, &status) && status.status < 500
}

func pause(ctx context.Context, d time.Duration) {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
}

func (c *client) do(ctx context.Context, method, body, last string) (*http.Response, error) {
	req, err := calls.NewRequest(ctx, method, c.urls[c.random.IntN(len(c.urls))], c.session, last, body)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusNoContent || resp.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
		_ = resp.Body.Close()
		if method == http.MethodDelete && resp.StatusCode == http.StatusNoContent {
			return resp, nil
		}
		return nil, &statusError{resp.StatusCode, untouched(resp, text), string(text)}
	}
	return resp, nil
}

// untouched reports whether a refusal says that nothing was done with the request: the
// bridge's when it is to be repeated, HAProxy's when it knows of no replica that is up.
func untouched(resp *http.Response, text []byte) bool {
	return resp.StatusCode == http.StatusServiceUnavailable &&
		(resp.Header.Get("Retry-After") != "" || strings.Contains(string(text), "No server is available"))
}
