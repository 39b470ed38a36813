package main

import (
	"slices"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/fleet"
	"github.com/mcpbridge/bridge/internal/logfield"
)

// deeds is what the pages of the admin listener let people do. Each leaves a line in
// the log.
type deeds struct {
	mounts *fleet.Fleet
	log    zerolog.Logger
}

// EndCall implements view.Actions.
func (d *deeds) EndCall(path, session, flow string) bool {
	if !d.ends(path, func(m *fleet.Member) bool { return m.EndCall(session, flow) }) {
		return false
	}
	logfield.Each(d.log.Warn()).Str(logfield.Path, path).Str(logfield.SessionID, session).Str(logfield.FlowID, flow).Msg("a call was ended on the admin listener")
	return true
}

// EndSession implements view.Actions.
func (d *deeds) EndSession(path, id string) bool {
	if !d.ends(path, func(m *fleet.Member) bool { return m.EndSession(id) }) {
		return false
	}
	logfield.Each(d.log.Warn()).Str(logfield.Path, path).Str(logfield.SessionID, id).Msg("a session was ended on the admin listener")
	return true
}

// ends has the one mount at a path that has something end it, under whichever settings, and reports whether one has.
func (d *deeds) ends(path string, end func(*fleet.Member) bool) bool {
	for _, p := range d.mounts.Places() {
		if p.Path() == path {
			return slices.ContainsFunc(p.All(), end)
		}
	}
	return false
}

// SetLevel implements view.Actions.
func (d *deeds) SetLevel(name string) bool {
	if _, err := zerolog.ParseLevel(name); err != nil || name == "" {
		return false
	}
	logfield.Each(d.log.Warn()).Str("level", name).Msg("the level of the log was set on the admin listener")
	setLevel(name)
	return true
}

// Level implements view.Actions.
func (d *deeds) Level() string { return zerolog.GlobalLevel().String() }
