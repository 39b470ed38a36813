package main

import (
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
func (d *deeds) EndCall(path, flow string) bool {
	for _, m := range d.mounts.Members() {
		if m.Path() == path && m.Bridge.EndCall(flow) {
			logfield.Each(d.log.Warn()).Str(logfield.Path, path).Str(logfield.FlowID, flow).Msg("a call was ended on the admin listener")
			return true
		}
	}
	return false
}

// EndSession implements view.Actions.
func (d *deeds) EndSession(path, id string) bool {
	for _, m := range d.mounts.Members() {
		if m.Path() == path && m.EndSession(id) {
			logfield.Each(d.log.Warn()).Str(logfield.Path, path).Str(logfield.SessionID, id).Msg("a session was ended on the admin listener")
			return true
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
