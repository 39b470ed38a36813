package exchange

import (
	"errors"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/sessions/store"
)

// removeLater removes, in the background, what the store could not remove when the call ended: whoever
// answers its question would have the call go on. There are no more of these than
// calls that were kept before the store failed. It ends with the record and with the process.
func (sc *storedCall) removeLater(ex *Exchange) {
	rest := &storedCall{version: sc.version, unsure: sc.unsure, record: callRecord{Stream: sc.record.Stream}}
	most := time.Until(sc.expires)
	ex.session.Later(sc.record.Request, func(stop func() bool) {
		err := rest.commit(ex, waiting{most: most, over: stop, long: true}, store.Change{Delete: true}, true)
		if errors.Is(err, downstream.ErrGone) { // another replica's word counts, whatever was said here
			ex.session.Streams().Forget(ex.stream.Load())
		}
	})
}
