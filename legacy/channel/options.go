package channel

import (
	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/observe"
)

// Options bounds a connection and says who is told of it.
type Options struct {
	MaxBody     int64                 // bytes of one line, for Serve
	MaxBatch    int                   // messages in one batch
	MaxPending  int                   // messages that wait behind initialize
	MaxInFlight func() int            // requests under way
	Tenant      func() string         // whose share a request takes; nil: that of the caller who opened it
	Account     *budget.Account       // what the connection holds, which closes it; nil: that is without bounds
	Gate        *gate.Gate            // requests are counted here; nil: nowhere
	Late        func() string         // what a request is told for which that is shut; needed with it
	Pace        func() *jsonrpc.Error // admits a request, or says why not; nil: all are admitted
	// Places counts a request in until leave, or says why not; nil: none are counted.
	Places func() (leave func(), err *jsonrpc.Error)
	// Streams is Places for what never ends by itself.
	Streams func() (leave func(), err *jsonrpc.Error)
	Logger  zerolog.Logger
	Dropped zerolog.Logger  // for messages that cannot be answered
	Watch   observe.Watcher // is told of the end; nil: nobody is
}
