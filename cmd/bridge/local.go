package main

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/fleet"
	"github.com/mcpbridge/bridge/internal/usersocket"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/observe/traces"
	"github.com/mcpbridge/bridge/observe/view"
)

// newLocalSight sees the messages of a process with one client.
func newLocalSight(cfg *config.Config, environ []string, log zerolog.Logger) *administration {
	a := newSight(cfg, log)
	a.hub.Track()
	tracer, err := traces.FromEnviron(func(name string) string { return variable(environ, name) }, versionText())
	if err != nil {
		log.Error().Err(err).Msg("nothing is traced") // the client would only see that nothing works, here and below
	}
	a.trace(tracer)
	if err := a.recordFromStart(cfg); err != nil {
		log.Error().Err(err).Msg("nothing is recorded")
	}
	return a
}

// private is the socket on which `bridge ps` and `bridge watch` of the same user look at
// a `bridge stdio`.
type private struct {
	server *http.Server
	done   chan struct{}
}

// openPrivate opens the socket. Where that cannot be done, clients are served all the
// same: nil.
func (a *administration) openPrivate(ctx context.Context, m *fleet.Member, environ []string, log zerolog.Logger) *private {
	listener, err := usersocket.Listen(ctx, usersocket.Dirs(func(name string) string { return variable(environ, name) }))
	if err != nil {
		log.Debug().Err(err).Msg("bridge ps will not see this process")
		return nil
	}
	p := &private{server: &http.Server{Handler: a.api(m), ReadHeaderTimeout: 5 * time.Second}, done: make(chan struct{})}
	go p.serve(listener)
	return p
}

func (p *private) serve(listener net.Listener) {
	defer close(p.done)
	_ = p.server.Serve(listener) // it ends with close
}

// close removes the socket.
func (p *private) close() {
	if p != nil {
		_ = p.server.Close()
		<-p.done
	}
}

// api serves what programs read, of the one session of a process.
func (a *administration) api(m *fleet.Member) http.Handler {
	pages := view.New(view.Options{
		Look: func() []view.Mount {
			a.hub.Look(lookAfter)
			tools, rules := m.Bridge.Tools()
			return []view.Mount{{
				Tools: tools, Rules: rules,
				Target: m.Target(), Ready: m.Ready(), Said: m.Said(), Server: m.Bridge.Server(),
				Sessions: a.hub.Conversations(observe.Stdio), Omissions: m.Bridge.Omissions(),
			}}
		},
		Messages: a.messages, After: a.after, Ends: a.ends, Recording: a, Version: "MCP Bridge " + versionText(),
	})
	mux := http.NewServeMux()
	mux.Handle("GET /api/v1/", pages)
	return mux
}
