package passthrough

import (
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/mcp"
)

// failed is a request that could not be passed on, for the log: never what it says.
type failed struct {
	session, method, tool string // as far as they are known
	began                 time.Time
}

// failedOf reads from its head what a request is about. The name there may be a resource's, or a task's.
func failedOf(r *http.Request, began time.Time) failed {
	f := failed{session: r.Header.Get(mcp.HeaderSessionID), method: r.Header.Get(mcp.HeaderMethod), began: began}
	if mcp.HasName(f.method) {
		f.tool = r.Header.Get(mcp.HeaderName)
	}
	return f
}

// tell writes the line of it. The log is one with a rate: peers can cause many.
func (f failed) tell(log *zerolog.Logger, err error) {
	line := log.Warn().Err(err)
	for name, value := range map[string]string{
		logfield.SessionID: logfield.Short(f.session), logfield.Method: fault.Clip(f.method), logfield.Tool: fault.Clip(f.tool),
	} {
		if value != "" {
			line = line.Str(name, value)
		}
	}
	line.Dur(logfield.Duration, time.Since(f.began)).Msg("a request could not be passed on")
}
