package main

import (
	"time"

	"github.com/mcpbridge/bridge/internal/fleet"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/observe/metrics"
	"github.com/mcpbridge/bridge/observe/view"
)

// states tells what is under way at every mount, for the metrics.
func states(mounts *fleet.Fleet) []metrics.State {
	var all []metrics.State
	for _, m := range mounts.Members() {
		all = append(all, stateOf(m))
	}
	return all
}

func stateOf(m *fleet.Member) metrics.State {
	limits := m.Limits()
	s := metrics.State{
		Mount: m.Path(), Ready: m.Ready(), SessionLimit: limits.Sessions, FlowLimit: limits.Flows,
		Sessions: map[metrics.Speaks]int{}, Streams: map[metrics.Stream]int{}, Suspended: map[string]int{},
	}
	now := time.Now()
	for _, version := range mcp.Legacy {
		s.Sessions[metrics.Speaks{Version: version, Transport: observe.StreamableHTTP}] = 0
	}
	for w := observe.ForServer + 1; w < observe.Waits; w++ {
		s.Suspended[w.String()] = 0
	}
	for _, session := range m.Look() {
		s.Sessions[metrics.Speaks{Version: session.Version, Transport: session.Transport}]++
		for _, st := range session.Streams {
			s.Streams[streamOf(&st)]++
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
	return s
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
func sights(mounts *fleet.Fleet) []view.Mount {
	var all []view.Mount
	for _, m := range mounts.Members() {
		all = append(all, view.Mount{
			Path: m.Path(), Target: m.Target(), Ready: m.Ready(), Said: m.Said(), Server: m.Bridge.Server(),
			Limit: m.Limits().Sessions, Sessions: m.Look(), Omissions: m.Bridge.Omissions(),
		})
	}
	return all
}
