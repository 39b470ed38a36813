package legacy

import (
	"errors"

	"github.com/mcpbridge/bridge/observe"
)

// Look tells what there is to see of every session at this moment.
func (h *HTTP) Look() []observe.Sight { return append(h.sessions.Look(), h.channels.Look()...) }

// EndSession ends the session with this shortened id, and reports whether there was one.
func (h *HTTP) EndSession(short string) bool {
	return h.sessions.End(short) || h.channels.End(short, errOperator)
}

// errOperator ends a connection that the people who run the bridge gave up.
var errOperator = errors.New("ended by who runs the bridge")
