package resource

import (
	"context"
	"net/http"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/uses"
)

// Keys are those of all issuers that the endpoints of a process take tokens of. They outlast the
// endpoints, which take each other's place: a reload while an issuer is down costs nobody anything.
type Keys struct{ known uses.Of[trusted, *keySet] }

// trusted tells issuers apart, and by what the process knows them: nobody's keys are taken over from
// who was trusted for other reasons.
type trusted struct{ issuer, trust string }

// NewKeys returns Keys of which none is known.
func NewKeys() *Keys { return &Keys{} }

// open returns the keys of an issuer, and what an endpoint calls at its end. With that of the last
// one they are forgotten.
func (k *Keys) open(of trusted, client *http.Client, log zerolog.Logger) (keys *keySet, closed func()) {
	return k.known.Use(of, func() *keySet {
		keys := &keySet{issuer: of.issuer, client: client, log: log.With().Str("issuer", of.issuer).Logger()}
		keys.ctx, keys.stop = context.WithCancel(context.Background())
		return keys
	}, (*keySet).close)
}
