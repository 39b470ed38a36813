package main

import (
	"io"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/observe/record"
	"github.com/mcpbridge/bridge/observe/view"
)

var _ view.Recording = (*administration)(nil)

// recordFromStart begins the recording that the settings want. One that cannot be made
// is no reason not to serve clients.
func (a *administration) recordFromStart(cfg *config.Config) {
	if cfg.Record == "" {
		return
	}
	if err := a.StartRecording(record.Filter{}); err != nil {
		a.log.Error().Err(err).Msg("nothing is recorded")
	}
}

// StartRecording implements view.Recording.
func (a *administration) StartRecording(of record.Filter) error {
	if err := a.recorder.Start(of); err != nil {
		return err
	}
	a.hub.Record(a.recorder.Take)
	a.log.Warn().Str("file", a.recorder.State().File).Bool("payloads", a.payloads).Msg("messages are recorded")
	return nil
}

// StopRecording implements view.Recording.
func (a *administration) StopRecording() { a.recorder.Stop() }

// RecordingState implements view.Recording.
func (a *administration) RecordingState() record.State { return a.recorder.State() }

// OpenRecording implements view.Recording.
func (a *administration) OpenRecording() (io.ReadCloser, error) { return a.recorder.Open() }

// recorded is told that a recording is over.
func (a *administration) recorded(state record.State, why error) {
	a.hub.Record(nil)
	line := a.log.Info()
	if why != nil {
		line = a.log.Error().Err(why)
	}
	line.Str("file", state.File).Int("messages", state.Lines).Int("lost", state.Lost).Msg("the recording has ended; calls go on")
}
