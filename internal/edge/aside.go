package edge

import (
	"context"
	"crypto/tls"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/connlimit"
	"github.com/mcpbridge/bridge/legacy/h1"
)

// Aside is a listener for others than clients: few, and trusted. Connections that say
// nothing take few of the process's file descriptors. A Unix socket is
// for its owner alone.
type Aside struct {
	listener    net.Listener
	server      *http.Server
	certificate *reloader // nil for plain HTTP
}

// OpenAside opens the listener that the settings under a name say, which is what
// errors mention. Connections wait until Serve.
func OpenAside(ctx context.Context, name, listen string, files Files, log zerolog.Logger) (*Aside, error) {
	a := &Aside{server: &http.Server{
		ReadHeaderTimeout: headTimeout, IdleTimeout: idleTimeout, ErrorLog: stdlog.New(connectionLog{log}, "", 0),
		MaxHeaderBytes: h1.MaxHead, HTTP2: overHTTP2(), // whoever reaches it may begin a request
	}}
	if files != (Files{}) {
		certificate, err := newReloader(files, log)
		if err != nil {
			return nil, fmt.Errorf("%s.%w", name, err)
		}
		a.certificate = certificate
	}
	listener, err := open(ctx, "--"+name+".listen", listen)
	if err != nil {
		return nil, err
	}
	if path, ok := strings.CutPrefix(listen, "unix:"); ok {
		if err := os.Chmod(path, 0o600); err != nil {
			listener.Close()
			return nil, err
		}
	}
	if a.listener = connlimit.Listen(a.server, listener, connlimit.Waiting()); a.certificate != nil {
		a.listener = tls.NewListener(a.listener, a.certificate.config())
	}
	a.certificate.watch()
	return a, nil
}

// Addr returns where the listener is.
func (a *Aside) Addr() net.Addr { return a.listener.Addr() }

// Names reports whether the certificate is one of this host.
func (a *Aside) Names(host string) bool {
	if a.certificate == nil {
		return false
	}
	pair := a.certificate.certificate()
	return pair.Leaf != nil && pair.Leaf.VerifyHostname(host) == nil
}

// Serve serves until Shutdown, whose error is http.ErrServerClosed.
func (a *Aside) Serve(handler http.Handler) error {
	a.server.Handler = handler
	return a.server.Serve(a.listener)
}

// Shutdown ends the listener. Requests that are under way get a moment, streams do not.
func (a *Aside) Shutdown() {
	a.certificate.close()
	ctx, cancel := context.WithTimeout(context.Background(), moment)
	defer cancel()
	if a.server.Shutdown(ctx) != nil {
		_ = a.server.Close()
	}
	_ = a.listener.Close() // nobody has served it, perhaps
}

const moment = 200 * time.Millisecond
