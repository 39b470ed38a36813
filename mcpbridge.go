// Package mcpbridge is the bridge as part of another Go program: an http.Handler
// at which clients of the older revisions of the Model Context Protocol (2024-11-05
// to 2025-11-25) reach a server that speaks only 2026-07-28.
//
// The command in cmd/bridge is made of the same parts, and adds what a process
// needs: settings from files and flags, listeners, reloads, health probes.
package mcpbridge

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/bridge"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/internal/mount"
	"github.com/mcpbridge/bridge/legacy"
	"github.com/mcpbridge/bridge/legacy/quiet"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/sessions/store"
	"github.com/mcpbridge/bridge/upstream/stdio"
	"github.com/mcpbridge/bridge/upstream/streamable"
)

// Options say which server to serve, and whom. One of Upstream and Command is
// required; the zero value of everything else is the default of the command. Limits
// and timeouts are those of the command, too.
type Options struct {
	// Upstream is the URL of the server's MCP endpoint.
	Upstream string
	// Header is added to every request to it, in place of what the client sends.
	Header http.Header
	// TLS says how to trust it; nil: the system's certificates.
	TLS *tls.Config
	// DropAuthorization keeps the clients' Authorization from it.
	DropAuthorization bool

	// Command is a server that speaks over standard input and output, and its
	// arguments. It is started by the first request.
	Command []string
	// Environ is its environment, as "KEY=value"; nil: this program's own.
	Environ []string

	// AllowedHosts are the values of Host that requests may carry, with or without
	// a port; "*" stands for any. Empty: loopback names, against DNS rebinding.
	AllowedHosts []string
	// AllowedOrigins are the origins whose pages may call; "*" stands for any.
	// Empty: loopback origins.
	AllowedOrigins []string
	// Principal names who a request acts for, opaquely: a session is only served to
	// whom it belongs. nil: told by the Authorization header.
	Principal func(*http.Request) string
	// RefuseModern answers clients of 2026-07-28 as an older server would, instead
	// of passing their requests on.
	RefuseModern bool
	// NoRelay refuses servers that speak only older revisions, instead of passing
	// their clients on.
	NoRelay bool

	// Store keeps the sessions of Streamable HTTP, and their calls that wait for an answer, so that they
	// go on in another Bridge with the same store, be it after a restart or at another machine; nil: they end with this one.
	// It may be an engine of your own: package sessionstest tells whether it can be used. What it is given are
	// credentials and answers: put store.NewSealed around what others can read. It is not closed.
	Store store.Store
	// StoreScope tells the sessions of several endpoints in one store apart, like the path. So does the
	// server: another Upstream or Command has none of them.
	StoreScope string
	// StoreSize is how many bytes clients may have this Bridge keep there, of which the last eighth is
	// for whoever has less than an eighth; 0: 1 GiB. What others keep there does not count.
	StoreSize int64
	// StoreWait is how long a call that has something to ask waits for a store that fails; 0: it ends
	// with an error at once.
	StoreWait time.Duration

	// Memory is how many bytes clients and the server may make the bridge hold: messages,
	// sessions, waiting calls, events. Near that newcomers, and whoever holds most, are
	// refused with 503 or 429. 0: a quarter of what this program may use, by GOMEMLIMIT,
	// its control group or the machine; negative: without bounds. What the collector keeps
	// to is the program's own affair (debug.SetMemoryLimit).
	Memory int64
	// Concurrency is how many requests are at the server at the same time; the others wait
	// for their turn. 0: 4096.
	Concurrency int
	// StandardHTTP has net/http speak with a server over plain HTTP, in place of the
	// bridge's own client, which takes less CPU.
	StandardHTTP bool
	// NoPark leaves every event stream its goroutine, also where ConnContext is used.
	NoPark bool

	// Log is where the bridge logs; the zero Logger is silent. Of each kind of line it writes 20 a minute; hooks
	// that the logger has already see the others, too.
	Log zerolog.Logger
}

// Bridge serves one MCP endpoint: Streamable HTTP and WebSocket of every revision.
// It is safe for concurrent use, and wants Shutdown or Close at its end.
type Bridge struct {
	mount  *mount.Mount
	memory *budget.Budget
}

// New makes a Bridge. Nothing is sent or started before the first request. It fails
// when the options name no server, or one that cannot be.
func New(opt Options) (*Bridge, error) {
	if (opt.Upstream == "") == (len(opt.Command) == 0) {
		return nil, errors.New("mcpbridge: one of Upstream and Command is needed")
	}
	memory := opt.budget()
	opt.Log = logfield.Rated(opt.Log)
	options := mount.Options{
		Upstream: streamable.Options{URL: opt.Upstream, Header: opt.Header, TLS: opt.TLS, StandardTransport: opt.StandardHTTP, Log: opt.Log},
		Legacy: legacy.Options{
			AllowedHosts: opt.AllowedHosts, AllowedOrigins: opt.AllowedOrigins, Principal: opt.Principal, Memory: memory, NoPark: opt.NoPark, Logger: opt.Log,
		},
		Concurrency:       opt.Concurrency,
		Bridge:            bridge.Options{Log: opt.Log},
		RefuseModern:      opt.RefuseModern,
		DropAuthorization: opt.DropAuthorization,
	}
	if opt.Store != nil {
		options.Legacy.Store, options.Legacy.StoreScope, options.Legacy.StoreWait = opt.Store, opt.StoreScope, opt.StoreWait
		options.Legacy.Replica = downstream.NewReplicaID()
		options.Legacy.StoreRoom = budget.NewRoom(cmp.Or(opt.StoreSize, 1<<30))
	}
	if len(opt.Command) > 0 {
		options.Command = &mount.Command{Stdio: stdio.Options{
			Command: opt.Command[0], Args: opt.Command[1:], Environ: opt.Environ, Log: opt.Log,
		}}
	}
	if opt.NoRelay {
		options.Relay = negotiate.RelayNever
	}
	at, err := mount.New(options)
	if err != nil {
		return nil, err
	}
	return &Bridge{at, memory}, nil
}

// budget is for what peers make the bridge hold; nil: it is without bounds.
func (o *Options) budget() *budget.Budget {
	size := cmp.Or(o.Memory, budget.Available()/4)
	if size <= 0 {
		return nil
	}
	return budget.New(size)
}

// ServeHTTP implements http.Handler. It serves the endpoint under whatever path it
// is reached.
func (b *Bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) { b.mount.ServeHTTP(w, r) }

// SSE returns a handler for the event streams of HTTP+SSE, the transport of
// 2024-11-05. Its clients are told to post to the path messages, where Messages
// has to be.
func (b *Bridge) SSE(messages string) http.Handler { return b.mount.SSE(messages) }

// Messages returns a handler for what clients of HTTP+SSE post.
func (b *Bridge) Messages() http.Handler { return b.mount.Messages() }

// ServeStdio serves one client over a pair of streams, until in ends or ctx does.
// It returns the context's error, or that of the streams.
func (b *Bridge) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	return legacy.ServeStdio(ctx, in, out, legacy.Options{Memory: b.memory}, b.mount.Backend)
}

// Shutdown refuses new requests, lets running calls finish until ctx ends, then ends
// every session, and the server's process if it is one. It returns the context's
// error when calls were cut off.
func (b *Bridge) Shutdown(ctx context.Context) error { return b.mount.Shutdown(ctx) }

// Close is Shutdown without the wait for running calls.
func (b *Bridge) Close() { b.mount.Close() }

// ConnContext lets quiet streams give their goroutines up, when it is the
// ConnContext of the http.Server before a Bridge.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	return quiet.ConnContext(ctx, conn)
}
