package view

import (
	"io"
	"net/http"

	"github.com/mcpbridge/bridge/observe/record"
)

// Recording is what records messages, for as long as people want.
type Recording interface {
	StartRecording() error
	// StopRecording returns when all is written.
	StopRecording()
	RecordingState() record.State
	// OpenRecording returns what was recorded so far, or last.
	OpenRecording() (io.ReadCloser, error)
}

// recording shows whether messages are recorded.
func (v *View) recording(w http.ResponseWriter, r *http.Request) {
	v.show(w, r, "recording", "Recording", v.opt.Recording.RecordingState())
}

// turnRecording starts or stops it.
func (v *View) turnRecording(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	switch r.PostFormValue("do") {
	case "start":
		if err := v.opt.Recording.StartRecording(); err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
	case "stop":
		v.opt.Recording.StopRecording()
	default:
		http.Error(w, "a recording is started or stopped", http.StatusBadRequest)
		return
	}
	http.Redirect(w, r, "/recording", http.StatusSeeOther)
}

// download sends what was recorded.
func (v *View) download(w http.ResponseWriter, _ *http.Request) {
	lines, err := v.opt.Recording.OpenRecording()
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	defer lines.Close()
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Content-Disposition", `attachment; filename="recording.jsonl"`)
	_, _ = io.Copy(w, lines)
}
