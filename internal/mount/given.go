package mount

import (
	"context"
	"net/http"

	"github.com/mcpbridge/bridge/bridge"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/passthrough"
	"github.com/mcpbridge/bridge/internal/relayed"
	"github.com/mcpbridge/bridge/upstream"
)

// given is a server that somebody else speaks with: nothing is known of it but
// that it answers calls, so everything goes through the bridge.
type given struct{ upstream.Caller }

func (g given) caller() upstream.Caller { return g.Caller }

func (given) asModern() http.Handler { return nil }

func (given) connections() *passthrough.Connections { return nil }

func (given) bypass() bypass { return noBypass{} }

func (given) backend(b *bridge.Bridge, _ *Mount) downstream.Backend { return b }

func (given) holds(string) bool { return false }

func (given) remembers() *relayed.Sessions { return nil }

func (given) sessionCount() int { return 0 }

func (given) close() {}

// noBypass is that of a server around which nothing goes.
type noBypass struct{}

func (noBypass) Active() int { return 0 }

func (noBypass) Drain() {}

func (noBypass) Shutdown(context.Context) error { return nil }

func (noBypass) Close() {}
