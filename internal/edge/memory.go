package edge

import (
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/internal/meter"
	"github.com/mcpbridge/bridge/legacy/web"
)

// Bounds of connections over HTTP/2. Each is what the process holds for a client that needs
// to send next to nothing for it, so none is left to net/http: it would take frames of a
// mebibyte, with a buffer of that size as soon as one is announced.
const (
	h2Streams      = meter.MostStreams
	h2Frame        = 16 << 10 // the least that the protocol allows
	h2Table        = 4 << 10  // of either direction's header fields
	h2Connection   = 1 << 20  // of bodies, until a handler takes them
	h2Stream       = 256 << 10
	h2Silence      = 30 * time.Second // after which a client shows that it is there: in the middle of a head, or of a frame, it cannot
	h2SilenceAfter = 15 * time.Second
)

func overHTTP2() *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams:          h2Streams,
		MaxReadFrameSize:              h2Frame,
		MaxDecoderHeaderTableSize:     h2Table,
		MaxEncoderHeaderTableSize:     h2Table,
		MaxReceiveBufferPerConnection: h2Connection,
		MaxReceiveBufferPerStream:     h2Stream,
		SendPingTimeout:               h2Silence,
		PingTimeout:                   h2SilenceAfter,
	}
}

// tenant names whose requests without credentials come from an address; "": trusted proxies, and
// whoever comes over a Unix socket, stand for many.
func (e *Edge) tenant(from net.Addr) string {
	if from := from.String(); !e.addresses.trusted.Load().include(from) {
		return web.Stranger(from)
	}
	return ""
}

// newLedger has connections charged to their tenants.
func (e *Edge) newLedger(opt *Options) *meter.Ledger {
	ledger := meter.New(opt.Memory, e.tenant, func(from net.Addr, why error) {
		what := "connections of this address hold too much of limits.memory: they are answered 503, or closed"
		if errors.Is(why, budget.ErrFull) { // which need not be this address's doing
			what = "there is hardly any of limits.memory left: connections of this address, among others, are answered 503, or closed"
		}
		e.greedy.say(func(before int) {
			opt.Log.Warn().Str(logfield.Remote, from.String()).Int("before", before).Msg(what)
		})
	})
	ledger.OnHello(func(from net.Addr) { // its own error says nothing of the cause
		e.secretive.say(func(before int) {
			opt.Log.Info().Str(logfield.Remote, from.String()).Int("before", before).
				Msg("a client spoke TLS (https://) to this listener of plain HTTP; give it an address with http://, or set tls.cert and tls.key")
		})
	})
	return ledger
}
