package legacy

import (
	"errors"

	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/observe"
)

// Look tells what there is to see of every session at this moment.
func (h *HTTP) Look() []observe.Sight {
	open := h.table.All()
	seen := make([]observe.Sight, 0, len(open))
	for _, use := range open {
		sight := use.Value.look()
		sight.Used = use.At
		seen = append(seen, sight)
	}
	return append(seen, h.channels.Look()...)
}

func (s *session) look() observe.Sight {
	return observe.Sight{
		ID: logfield.Short(s.rec.ID), Transport: observe.StreamableHTTP, Began: s.born, Conversation: s.conv.Look(), Streams: s.streams.Look(),
	}
}

// EndSession ends the session with this shortened id, and reports whether there was one.
func (h *HTTP) EndSession(short string) bool {
	for _, use := range h.table.All() {
		if logfield.Short(use.Value.rec.ID) == short {
			return h.table.Remove(use.Value.rec.ID)
		}
	}
	return h.channels.End(short, errOperator)
}

// errOperator ends a connection that the people who run the bridge gave up.
var errOperator = errors.New("ended by who runs the bridge")
