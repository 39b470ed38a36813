package catalog

import (
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/rawjson"
)

// Server is what a server offers, as one discover said. Many sessions share one, so
// what it says is never changed.
type Server struct {
	Discover  []byte // raw DiscoverResult; nil when nobody asked yet
	Version   string // modern version to speak with it
	Logging   bool
	Subscribe bool // resources.subscribe
	Tasks     bool // the tasks extension
	Lists     Lists

	generation uint64 // of the verdict that it was read from
	greetings  renderings
	users      int // sessions that have joined; guarded by the catalogue
}

// Lists says of which lists a server announces changes.
type Lists struct{ Tools, Prompts, Resources bool }

// Empty reports whether there is nothing to listen for.
func (l Lists) Empty() bool { return l == Lists{} }

// Unknown stands for a server that nobody asked yet.
var Unknown = &Server{Logging: true, Version: string(mcp.V20260728)}

func readServer(verdict *negotiate.Verdict) *Server {
	caps := rawjson.Get(verdict.Discover, "capabilities")
	return &Server{
		Discover:  verdict.Discover,
		Version:   verdict.Version,
		Logging:   rawjson.KindOf(rawjson.Get(caps, "logging")) == rawjson.Object,
		Subscribe: isTrue(rawjson.Get(caps, "resources"), "subscribe"),
		Tasks:     rawjson.Has(rawjson.Get(caps, "extensions"), mcp.ExtensionTasks),
		Lists: Lists{
			Tools:     isTrue(rawjson.Get(caps, "tools"), "listChanged"),
			Prompts:   isTrue(rawjson.Get(caps, "prompts"), "listChanged"),
			Resources: isTrue(rawjson.Get(caps, "resources"), "listChanged"),
		},
		generation: verdict.Generation,
	}
}

// Greeting returns the result of initialize for clients of a version that can
// listen, which render makes when it is needed first. Nobody may change it.
func (s *Server) Greeting(version mcp.Version, render func() ([]byte, error)) ([]byte, error) {
	return s.greetings.of(version, render, nil)
}
