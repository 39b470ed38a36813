// Package streamable is the client of servers over Streamable HTTP. It owns the headers
// that repeat a body, reading responses, limits and connections, and tells failures
// apart by cause, in the words of package upstream.
package streamable

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/singleflight"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/hop"
	"github.com/mcpbridge/bridge/internal/roundtrip"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/upstream"
	"github.com/mcpbridge/bridge/upstream/mirror"
)

// Defaults of Options.
const (
	DefaultMaxResponse   = 16 << 20
	DefaultMaxIdle       = 256
	DefaultIdleTimeout   = 90 * time.Second
	DefaultDialTimeout   = 10 * time.Second
	DefaultMaxRetryAfter = 5 * time.Second
)

// Options configures New. Zero values mean the defaults.
type Options struct {
	// URL is the MCP endpoint, http or https.
	URL string
	// Header is sent with every request, for example a static Authorization, and
	// replaces what a call has under the same names.
	Header http.Header
	// DropAuthorization keeps the credentials of calls from the server.
	DropAuthorization bool
	// TLS configures https: own CAs, a client certificate.
	TLS *tls.Config
	// Dial opens connections; nil dials TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// StandardTransport uses net/http's transport for plain http too.
	StandardTransport bool
	// MaxResponse bounds a JSON body and a single SSE event, in bytes.
	MaxResponse int
	// MaxIdle bounds the idle connections kept for reuse.
	MaxIdle int
	// IdleTimeout closes connections that were not used for so long.
	IdleTimeout time.Duration
	// DialTimeout bounds connecting, the TLS handshake included.
	DialTimeout time.Duration
	// HeaderTimeout bounds the wait for the head of a response, which for a
	// JSON answer is the whole execution. 0 leaves it to each call's deadline.
	HeaderTimeout time.Duration
	// MaxRetryAfter is the longest Retry-After that a read-only call waits
	// for before its one resend (E-41). Negative: never.
	MaxRetryAfter time.Duration
	// Fallback admits servers that do not offer 2026-07-28; nil: none.
	Fallback upstream.Fallback
	// UserAgent is the User-Agent header; default "mcp-bridge".
	UserAgent string
	// Tools is where it is remembered which arguments of tools headers repeat; nil: here.
	Tools *mirror.Tools
	// Account is charged with what is held of responses to calls that do not say who is: those
	// that the bridge makes itself. It may be nil.
	Account *budget.Account
	// Excluded is told which tools are not shown to clients, and why (B-23); it may be nil.
	Excluded func(tool, reason string)
	// Repeated is told when a request is sent again, and why; it may be nil.
	Repeated func(observe.Repeat)
	Log      zerolog.Logger
}

// Policy returns what crosses to the server besides messages.
func (o *Options) Policy() hop.Policy {
	return hop.Policy{Header: o.Header, DropAuthorization: o.DropAuthorization}
}

func (o *Options) defaults() {
	o.MaxResponse = cmp.Or(o.MaxResponse, DefaultMaxResponse)
	o.MaxIdle = cmp.Or(o.MaxIdle, DefaultMaxIdle)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, DefaultIdleTimeout)
	o.DialTimeout = cmp.Or(o.DialTimeout, DefaultDialTimeout)
	o.MaxRetryAfter = cmp.Or(o.MaxRetryAfter, DefaultMaxRetryAfter)
	o.UserAgent = cmp.Or(o.UserAgent, "mcp-bridge")
	if o.Dial == nil {
		o.Dial = Dialer(o.DialTimeout)
	}
}

// Dialer returns how connections are made when the options do not say; a timeout of 0 is
// the default.
func Dialer(timeout time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	return roundtrip.Dialer(cmp.Or(timeout, DefaultDialTimeout))
}

// Client is a Caller for a Streamable HTTP server. It POSTs, and does nothing
// else (E-43).
type Client struct {
	opt     Options
	url     *url.URL
	carrier carrier
	tools   *mirror.Tools
	refresh singleflight.Group
	// rawNames is set once the server proved to compare Mcp-Name undecoded.
	rawNames atomic.Bool

	ctx  context.Context // ends with Close
	stop context.CancelFunc
}

var _ upstream.Caller = (*Client)(nil)

// New makes a client. No connection is made before the first call.
func New(opt Options) (*Client, error) {
	u, err := endpoint(opt.URL)
	if err != nil {
		return nil, err
	}
	opt.defaults()
	c := &Client{opt: opt, url: u, tools: cmp.Or(opt.Tools, new(mirror.Tools))}
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.carrier = newCarrier(u, &c.opt)
	return c, nil
}

// endpoint checks an upstream URL.
func endpoint(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil: // which quotes what may be a password
		return nil, errors.New("upstream URL is not valid")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("upstream URL needs the scheme http or https, not %q", upstream.Clip(u.Scheme))
	case u.Host == "" || u.Hostname() == "":
		return nil, fmt.Errorf("upstream URL names no host")
	case u.User != nil:
		return nil, fmt.Errorf("upstream URL holds credentials; configure an Authorization header instead")
	}
	u.Fragment, u.RawFragment = "", ""
	if u.Path == "" {
		u.Path = "/"
	}
	return u, nil
}

// Close implements Caller: it closes every connection, which ends the calls
// under way with cause Canceled.
func (c *Client) Close() error {
	c.stop()
	c.carrier.close()
	return nil
}

// Do implements Caller.
func (c *Client) Do(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
	if call.Held == nil && c.opt.Account != nil {
		return c.doOwn(ctx, *call, notify)
	}
	ans, err := c.run(ctx, call, sink{notify: notify, idle: call.Idle, listen: call.Method == mcp.MethodListen})
	if err != nil {
		return nil, err
	}
	if call.Method == mcp.MethodToolsList && ans.Error == nil {
		if err := c.learn(call, ans); err != nil {
			ans.Release()
			return nil, err
		}
	}
	return ans, nil
}

// doOwn makes a call of the bridge's own: what comes is charged to it until there is an answer.
func (c *Client) doOwn(ctx context.Context, call upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
	held := budget.On(c.opt.Account)
	defer held.Release()
	call.Held = &held
	return c.Do(ctx, &call, notify)
}

// timesRead is how much memory it takes to read what a list of tools says about headers, in times the list.
const timesRead = 2

// learn feeds the schema store and drops illegal tools from the result (B-23).
func (c *Client) learn(call *upstream.Call, ans *upstream.Answer) error {
	if size := len(ans.Result); size >= upstream.HeldStep {
		if short := upstream.Charge(call.Held, timesRead*size); short != nil {
			return upstream.NotTakenIn(short)
		}
		defer func() { _ = upstream.Charge(call.Held, size) }() // less is never refused
	}
	out, dropped := c.tools.Learn(audience(call), ans.Result)
	if len(out) != len(ans.Result) { // those that were known as illegal before are dropped, too
		ans.Replace(out)
	}
	for _, d := range dropped {
		c.opt.Log.Warn().Str("tool", d.Name).Str("reason", d.Reason).
			Msg("tool excluded: illegal " + mirror.Annotation + " annotation")
		if c.opt.Excluded != nil {
			c.opt.Excluded(d.Name, "illegal "+mirror.Annotation+" annotation: "+d.Reason)
		}
	}
	return nil
}

// Listen implements Caller.
func (c *Client) Listen(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) error {
	return upstream.EndOfListen(c.run(ctx, call, sink{notify: notify, idle: call.Idle, listen: true}))
}

// origin is the scheme and authority of the upstream: safe to show, unlike
// its path and query.
func (o *Options) origin() string {
	u, err := url.Parse(o.URL)
	if err != nil {
		return "the upstream"
	}
	return strings.ToLower(u.Scheme) + "://" + u.Host
}
