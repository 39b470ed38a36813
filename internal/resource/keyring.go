package resource

import (
	"context"
	"net/http"
	"sync"

	"github.com/rs/zerolog"
)

// Keys are those of all issuers that the endpoints of a process take tokens of. They outlast the
// endpoints, which take each other's place: a reload while an issuer is down costs nobody anything.
type Keys struct {
	mu    sync.Mutex
	known map[trusted]*keptKeys
}

// trusted tells issuers apart, and by what the process knows them: nobody's keys are taken over from
// who was trusted for other reasons.
type trusted struct{ issuer, trust string }

// keptKeys are those of one issuer, as long as there is an endpoint that wants them.
type keptKeys struct {
	keySet
	endpoints int
}

// NewKeys returns Keys of which none is known.
func NewKeys() *Keys { return &Keys{known: map[trusted]*keptKeys{}} }

// open returns the keys of an issuer, and what an endpoint calls at its end. With that of the last
// one they are forgotten.
func (k *Keys) open(of trusted, client *http.Client, log zerolog.Logger) (keys *keySet, closed func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept := k.known[of]
	if kept == nil {
		kept = &keptKeys{keySet: keySet{issuer: of.issuer, client: client, log: log.With().Str("issuer", of.issuer).Logger()}}
		kept.ctx, kept.stop = context.WithCancel(context.Background())
		k.known[of] = kept
	}
	kept.endpoints++
	return &kept.keySet, sync.OnceFunc(func() {
		if k.leave(of, kept) {
			kept.close()
		}
	})
}

// leave reports whether it was the last endpoint.
func (k *Keys) leave(of trusted, kept *keptKeys) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if kept.endpoints--; kept.endpoints > 0 {
		return false
	}
	delete(k.known, of)
	return true
}
