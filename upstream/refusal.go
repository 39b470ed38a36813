package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// receiveRefusal reads a response whose status is not 200: a JSON-RPC error
// where there is one (E-39), else a Failure by status (E-40, E-41).
func (c *HTTP) receiveRefusal(ctx context.Context, req *request, x exchange) (*Answer, error) {
	body, err := io.ReadAll(io.LimitReader(x, maxErrorBody))
	if err != nil {
		x.abort()
		if f := Interrupted(ctx, true); f != nil {
			return nil, f
		}
	}
	f := c.byStatus(x, body)
	msg, malformed := jsonrpc.Parse(body)
	if err == nil {
		release(x, malformed == nil && msg.ID == req.id && msg.Kind() == jsonrpc.Response)
	}
	if f.Cause == Unauthorized || f.Cause == Busy || f.Status < 300 {
		return nil, f
	}
	if malformed == nil && msg.Error != nil {
		if ans, ok := match(&msg, nil, req.id); ok {
			return ans, nil
		}
	}
	return nil, f
}

// byStatus judges a status other than 200.
func (c *HTTP) byStatus(x exchange, body []byte) *Failure {
	status, origin := x.status(), c.opt.origin()
	f := refused(status, "the upstream %s answered a request with HTTP %d", origin, status)
	switch {
	case status == 401 || status == 403:
		f.Cause = Unauthorized
		f.Challenge = x.values("Www-Authenticate")
		f.Detail = "the upstream " + origin + " demands authorization (HTTP " + strconv.Itoa(status) + ")"
	case status == 429 || status == 503:
		f.Cause = Busy
		f.RetryAfter = retryAfter(x.values("Retry-After"), time.Now())
		f.Detail = "the upstream " + origin + " is busy (HTTP " + strconv.Itoa(status) + ")"
	case status == 400 && strings.Contains(string(body[:min(len(body), maxQuote)]), "HTTP request to an HTTPS server"):
		f.Cause = TLS
		f.Detail = "the port of the upstream " + origin + " speaks TLS; the URL should begin with https://"
	case status == 400 || status == 404 || status == 405:
		f.Cause = NotModern
		f.Detail = "the upstream " + origin + " answered HTTP " + strconv.Itoa(status) +
			" without a modern error: either the URL is wrong or the server does not speak MCP 2026-07-28"
	case status >= 500:
		f.Cause = ServerError
		f.Detail = "the upstream " + origin + " failed with HTTP " + strconv.Itoa(status)
	}
	return f
}

// retryAfter reads a Retry-After value: seconds or an HTTP date. 0 means none.
func retryAfter(values []string, now time.Time) time.Duration {
	if len(values) == 0 {
		return 0
	}
	v := strings.TrimSpace(values[0])
	if n, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(t.Sub(now), 0)
	}
	return 0
}

// lost makes the Failure of a response that broke off while it was read.
func (c *HTTP) lost(ctx context.Context, status int, err error) *Failure {
	if f := Interrupted(ctx, true); f != nil {
		f.Status = status
		return f
	}
	f := fail(Lost, err, "the upstream %s ended the response before it was complete", c.opt.origin())
	f.Status = status
	if budget.Short(err) {
		f.Cause = NoMemory
		f.Detail = "the response of the upstream was not taken in: " + err.Error()
	}
	if errors.Is(err, errTooLarge) {
		f.Cause = TooLarge
		f.Detail = fmt.Sprintf("the response of the upstream %s exceeds %d bytes", c.opt.origin(), c.opt.MaxResponse)
	}
	return f
}

// refused makes the Failure of a response that is no MCP answer.
func refused(status int, format string, args ...any) *Failure {
	f := fail(BadResponse, nil, format, args...)
	f.Status = status
	return f
}
