package relay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/http1"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// takeTimeout bounds how long the server may take to take a notification or an
// answer, and for how long one is offered again.
const takeTimeout = 30 * time.Second

// Bounds of offering a message again.
const (
	firstAgain   = 250 * time.Millisecond // doubled each time, unless the server names a time
	longestAgain = 5 * time.Second
	maxAgain     = 16 // messages of one line at a time
)

// hand sends a notification or an answer, and waits until the server took it. What the
// response to a cancelled request would still say nobody reads.
func (c *courier) hand(o *outgoing) {
	ctx, cancel := context.WithTimeout(c.ctx, takeTimeout)
	err := c.carrier.hand(ctx, o)
	if o.method == mcp.NotificationCancelled {
		c.forget(jsonrpc.ID(rawjson.Get(o.params, "requestId")))
	}
	if err == nil {
		cancel()
		c.settled(o, nil)
		return
	}
	wait, passes := passing(err)
	again := passes && o.repeatable() && c.enterAgain()
	kept := *o
	c.work.Go(func() { // whoever hears of the end may send something, which must not wait for this goroutine
		defer cancel()
		if again {
			err = c.offer(ctx, &kept, wait, err)
			<-c.again
		}
		c.settled(&kept, err)
	})
}

// enterAgain takes a place of those whose messages are offered again.
func (c *courier) enterAgain() bool {
	select {
	case c.again <- struct{}{}:
		return true
	default:
		return false
	}
}

// repeatable reports whether the server can tell by the id what is said twice, as long as that id
// is not another request's. What people answered is lost otherwise, and a cancelled request runs on.
func (o *outgoing) repeatable() bool {
	return o.kind == jsonrpc.Response || o.method == mcp.NotificationCancelled
}

// offer sends a message again until the server takes it, or there is no use. What else
// is to be sent does not wait for that.
func (c *courier) offer(ctx context.Context, o *outgoing, wait time.Duration, err error) error {
	for next := firstAgain; ; next = min(2*next, longestAgain) {
		if !pause(ctx, min(max(wait, next), longestAgain)) || c.reused(o) {
			return err
		}
		err = c.carrier.hand(ctx, o)
		passes := false
		if wait, passes = passing(err); !passes {
			return err
		}
	}
}

// reused reports whether a cancelled request's id is that of another one by now.
func (c *courier) reused(o *outgoing) bool {
	if o.method != mcp.NotificationCancelled {
		return false
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.calls[jsonrpc.ID(rawjson.Get(o.params, "requestId"))] != nil // forget has taken its own out
}

// settled lets go of a message that was sent, or was not.
func (c *courier) settled(o *outgoing, err error) {
	o.held.Release()
	if err != nil && c.ctx.Err() == nil {
		c.carrier.untaken(o, err)
	}
}

// passing reports whether what kept the server from taking a message may pass, and when it
// said so, for how long to wait.
func passing(err error) (wait time.Duration, passes bool) {
	if err == nil {
		return 0, false
	}
	if status, answered := errors.AsType[*badStatus](err); answered {
		return status.wait, status.passes()
	}
	_, guarded := errors.AsType[*downstream.Refusal](err)
	return 0, !guarded // else nothing came back
}

// badStatus is a response with a status that takes nothing and asks for nothing.
type badStatus struct {
	code int
	wait time.Duration // Retry-After
}

func (s *badStatus) Error() string {
	return fmt.Sprintf("the server answered a request with HTTP %d", s.code)
}

// passes reports whether the status speaks of a moment, not of the message.
func (s *badStatus) passes() bool {
	switch s.code {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// refusal is what the client is told of a response with another status.
func refusal(resp *http.Response) error {
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		return &downstream.Refusal{Status: resp.StatusCode, Challenge: resp.Header.Values("Www-Authenticate")}
	}
	return &badStatus{resp.StatusCode, retryAfter(resp)}
}

func retryAfter(resp *http.Response) time.Duration {
	return http1.RetryAfter(resp.Header.Values("Retry-After"), time.Now())
}

// untaken tells the log of a message that got lost, and of an answer whoever waits for the
// end of the call that asked: unless the server has refused that very answer, and goes on.
func (s *HTTP) untaken(inbox Inbox, o *outgoing, why error) {
	s.opt.Log.Warn().Err(why).Msg("the server did not take a message")
	status, answered := errors.AsType[*badStatus](why)
	if o.kind == jsonrpc.Response && (!answered || status.passes()) {
		inbox.Unanswered(o.id, why)
	}
}

// pause waits, and reports whether there is still a use.
func pause(ctx context.Context, wait time.Duration) bool {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
