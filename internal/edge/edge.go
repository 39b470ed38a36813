// Package edge is where connections of clients arrive: the listener and the
// socket that a killed process left behind, TLS with a certificate that may be
// renewed, PROXY headers, whom a request comes from, what happens when the
// process has no file descriptors left, and the order in which all that ends.
//
// It knows no MCP. The order of a connection:
//
//	socket ─▶ crowd (is there room?) ─▶ PROXY header ─▶ TLS ─▶ HTTP server ─▶ addresses ─▶ handler
package edge

import (
	"context"
	"crypto/tls"
	stdlog "log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/meter"
	"github.com/mcpbridge/bridge/internal/socket"
	"github.com/mcpbridge/bridge/legacy/h1"
	"github.com/mcpbridge/bridge/legacy/quiet"
)

// Bounds of the HTTP server that no setting changes: how long a client may take
// to send a request's head, and how long an unused connection is kept.
const (
	headTimeout = 10 * time.Second
	idleTimeout = 2 * time.Minute
)

// Options say where clients arrive. Only Listen is required.
type Options struct {
	Listen  string // HOST:PORT, or unix:PATH
	TLS     Files
	Proxies Proxies
	// Memory is charged for connections, and for heads of requests until they are whole; nil: nothing is.
	Memory *budget.Budget
	// StandardHTTP has net/http serve plain connections, too.
	StandardHTTP bool
	Log          zerolog.Logger
}

// Edge is an open listener and its HTTP server.
type Edge struct {
	listener    net.Listener
	crowd       *crowd
	server      *h1.Server
	addresses   *addresses
	certificate *reloader // nil for plain HTTP
	unused      unused
	greedy      seldom
	secretive   seldom // those who speak TLS to a plain listener
}

// Open opens the listener. Connections wait until Serve; an Edge that will not
// be served wants Shutdown, too.
func Open(ctx context.Context, handler http.Handler, opt Options) (*Edge, error) {
	e := &Edge{addresses: newAddresses(opt.Proxies, handler, opt.Log)}
	secured := func(l net.Listener) net.Listener { return l }
	if opt.TLS != (Files{}) {
		certificate, err := newReloader(opt.TLS, opt.Log)
		if err != nil {
			return nil, err
		}
		e.certificate = certificate
		secured = func(l net.Listener) net.Listener { return tls.NewListener(l, certificate.config()) }
	}
	bound, err := open(ctx, "--listen", opt.Listen)
	if err != nil {
		return nil, err
	}
	begin := func(l net.Listener) net.Listener { return secured(&proxied{l, e.addresses, opt.Log}) }
	e.crowd = newCrowd(bound, e.tenant, begin, handler, opt.Log)
	ledger := e.newLedger(&opt)
	if opt.StandardHTTP || e.certificate != nil {
		e.server = h1.NewStandard(e.addresses, e.standard(opt.Log))
		begin = func(l net.Listener) net.Listener {
			l = &proxied{l, e.addresses, opt.Log}
			if !opt.StandardHTTP {
				l = socket.Listener(l)
			}
			return secured(ledger.Below(l, e.certificate != nil))
		}
	} else {
		e.server = h1.New(e.addresses, e.standard(opt.Log))
	}
	e.server.Charge(ledger)
	e.listener = begin(e.crowd)
	e.certificate.watch()
	return e, nil
}

// standard makes what serves the connections that are not simple.
func (e *Edge) standard(log zerolog.Logger) *http.Server {
	s := &http.Server{
		ReadHeaderTimeout: headTimeout,
		ReadTimeout:       meter.ReadTimeout, // lateBody bounds bodies
		IdleTimeout:       idleTimeout,
		ErrorLog:          stdlog.New(connectionLog{log}, "", 0),
		ConnContext:       quiet.ConnContext, // quiet streams give their goroutines up
		ConnState:         e.unused.note,
		Protocols:         new(http.Protocols),
		HTTP2:             overHTTP2(),
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(true)
	s.Protocols.SetUnencryptedHTTP2(true) // as proxies in a pod speak it
	return s
}

// Addr returns where clients arrive.
func (e *Edge) Addr() net.Addr { return e.listener.Addr() }

// Serve serves clients until Shutdown, whose error is http.ErrServerClosed, or
// until the listener fails.
func (e *Edge) Serve() error { return e.server.Serve(e.listener) }

// Trust replaces the trusted proxies.
func (e *Edge) Trust(p Proxies) { e.addresses.trusted.Store(&p) }

// Certificate reads one, for a listener that has one already: the same files anew, or other ones. It takes as long as
// the files do. Nothing has changed until take is called.
func (e *Edge) Certificate(files Files) (take func(), err error) {
	if e.certificate == nil {
		return func() {}, nil
	}
	found, err := load(files)
	if err != nil {
		return nil, err
	}
	return func() { e.certificate.replace(found) }, nil
}

// Shutdown stops listening and ends every connection: those that are used when
// their request is over or ctx ends, the others at once.
func (e *Edge) Shutdown(ctx context.Context) {
	e.certificate.close()
	e.unused.close()
	if err := e.server.Shutdown(ctx); err != nil {
		_ = e.server.Close()
	}
	_ = e.listener.Close() // nobody has served it, perhaps
	e.crowd.end()
}

// connectionLog takes what net/http says about single connections, which is of
// interest only to somebody who looks for a fault.
type connectionLog struct{ log zerolog.Logger }

func (c connectionLog) Write(line []byte) (int, error) {
	c.log.Debug().Str("text", strings.TrimSpace(string(line))).Msg("net/http about a connection")
	return len(line), nil
}
