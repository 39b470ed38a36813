//go:build unix

package main

import (
	"context"
	"net/http"

	"github.com/mcpbridge/bridge/sse"
)

// again comes back for a stream that was read to its end: nothing may come twice.
func (x *exchange) again(ctx context.Context) {
	if x.last == "" || x.how != gotResult || x.plan.habit != habitAgain {
		return
	}
	resp, err := x.repeat(ctx, http.MethodGet, "", x.last)
	if err != nil {
		return // 204: there is nothing more; 400: nobody knows the stream any more
	}
	defer resp.Body.Close()
	events := sse.NewDecoder(resp.Body, 16<<20)
	for {
		ev, err := events.Next()
		if err != nil {
			return
		}
		if len(ev.Data) > 0 {
			x.ledger.twice(x.plan.Nonce, "what was fetched: "+string(ev.Data))
		}
	}
}
