package main

import (
	"strings"
	"time"

	"github.com/mcpbridge/bridge/internal/dialect"
	"github.com/mcpbridge/bridge/internal/fleet"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/observe/metrics"
	"github.com/mcpbridge/bridge/observe/view"
	"github.com/mcpbridge/bridge/rawjson"
)

// states tells what is under way at every mount, for the metrics.
func states(mounts *fleet.Fleet) []metrics.State {
	var all []metrics.State
	for _, p := range mounts.Places() {
		s := newState(p.Member)
		for _, m := range p.All() {
			count(&s, m)
		}
		all = append(all, s)
	}
	return all
}

// newState is what is true of a mount's path whatever is under way there.
func newState(m *fleet.Member) metrics.State {
	limits := m.Limits()
	s := metrics.State{
		Mount: m.Path(), Ready: m.Ready(), SessionLimit: limits.Sessions, FlowLimit: limits.Flows, Server: serverSays(m), TokenExpires: m.TokenExpires(),
		Sessions: map[metrics.Speaks]int{}, Streams: map[metrics.Stream]int{}, Suspended: map[string]int{},
	}
	_, s.ChildLimit = m.Processes()
	for _, version := range mcp.Legacy {
		s.Sessions[metrics.Speaks{Version: version, Transport: observe.StreamableHTTP}] = 0
	}
	for w := observe.ForServer + 1; w < observe.Waits; w++ {
		s.Suspended[w.String()] = 0
	}
	return s
}

// count adds what is under way at one of a path's mounts.
func count(s *metrics.State, m *fleet.Member) {
	all, waiting := m.Bridge.Listens()
	s.Listens, s.Reconnecting = s.Listens+all-waiting, s.Reconnecting+waiting
	children, _ := m.Processes()
	s.Children, s.Shared, s.Connections = s.Children+children, s.Shared+m.Shared(), s.Connections+m.Connections()
	now := time.Now()
	for _, session := range m.Look() {
		s.Sessions[metrics.Speaks{Version: session.Version, Transport: session.Transport}]++
		for _, st := range streamsOf(&session) {
			s.Streams[st]++
		}
		for i := range session.Flows {
			flow := &session.Flows[i]
			if flow.Waits == observe.ForServer {
				s.InFlight++
				continue
			}
			s.Suspended[flow.Waits.String()]++
			s.Oldest = max(s.Oldest, now.Sub(flow.Since).Seconds())
		}
	}
}

// serverSays is what a mount's server said of itself last.
func serverSays(m *fleet.Member) metrics.Server {
	discover := m.Bridge.Server()
	if discover == nil {
		return metrics.Server{}
	}
	info := rawjson.Get(rawjson.Get(discover, "_meta"), mcp.MetaServerInfo)
	if info == nil {
		info = rawjson.Get(discover, "serverInfo")
	}
	name, _ := rawjson.Text(rawjson.Get(info, "name"))
	version, _ := rawjson.Text(rawjson.Get(info, "version"))
	var versions []string
	for v := range rawjson.Elements(rawjson.Get(discover, "supportedVersions")) {
		if text, ok := rawjson.Text(v); ok {
			versions = append(versions, text)
		}
	}
	return metrics.Server{Era: "modern", Versions: strings.Join(versions, " "), Name: name, Version: version,
		Draft: dialect.Newest(rawjson.Get(discover, "supportedVersions"))}
}

// streamsOf lists the streams of a session, as they are counted. A connection that is the
// session is one.
func streamsOf(session *observe.Sight) (list []metrics.Stream) {
	switch session.Transport {
	case observe.HTTPSSE:
		return []metrics.Stream{{Kind: "sse", State: "attached"}}
	case observe.WebSocket:
		return []metrics.Stream{{Kind: "websocket", State: "attached"}}
	}
	for i := range session.Streams {
		list = append(list, streamOf(&session.Streams[i]))
	}
	return list
}

// streamOf says what a stream is counted as.
func streamOf(st *observe.Stream) metrics.Stream {
	kind, state := "call", "detached"
	if st.ID == 0 {
		kind = "get"
	}
	switch {
	case st.Ended:
		state = "ended"
	case st.Attached:
		state = "attached"
	}
	return metrics.Stream{Kind: kind, State: state}
}

// sights tells what there is to see of every mount, for the pages.
func (a *administration) sights(mounts *fleet.Fleet) []view.Mount {
	a.hub.Look(lookAfter)
	var all []view.Mount
	for _, p := range mounts.Places() {
		tools, rules := p.Bridge.Tools()
		m := view.Mount{
			Tools: tools, Rules: rules, Behind: p.Behind, Pace: a.hub.Pace(p.Path()),
			Path: p.Path(), Target: p.Target(), Ready: p.Ready(), Said: p.Said(), Server: p.Bridge.Server(),
			Limit: p.Limits().Sessions, Omissions: p.Bridge.Omissions(), Removed: p.Removed,
		}
		for _, before := range p.Before {
			m.Sessions = append(m.Sessions, before.Look()...)
		}
		m.Earlier = len(m.Sessions)
		m.Sessions = append(m.Sessions, p.Look()...)
		if p.Removed {
			m.Earlier = len(m.Sessions)
		}
		all = append(all, m)
	}
	return all
}
