package main

import (
	"fmt"
	"io"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/observe/record"
	"github.com/mcpbridge/bridge/observe/view"
)

var _ view.Recording = (*administration)(nil)

// recordFromStart begins the recording that the settings want.
func (a *administration) recordFromStart(cfg *config.Config) error {
	if cfg.Record == "" {
		return nil
	}
	if err := a.StartRecording(record.Filter{}); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return nil
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
