package view

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/mcpbridge/bridge/observe/record"
)

// Recording is what records messages, for as long as people want.
type Recording interface {
	StartRecording(of record.Filter) error
	// StopRecording returns when all is written.
	StopRecording()
	RecordingState() record.State
	// OpenRecording returns what was recorded so far, or last.
	OpenRecording() (io.ReadCloser, error)
}

// recording shows whether messages are recorded.
func (v *View) recording(w http.ResponseWriter, r *http.Request) {
	v.show(w, r, "recording", "Recording", map[string]any{"State": v.opt.Recording.RecordingState(), "Session": r.URL.Query().Get("session")})
}

// wanted reads from a form what is to be recorded.
func (v *View) wanted(r *http.Request) (f record.Filter, err error) {
	text := func(name string) string { return strings.TrimSpace(r.PostFormValue(name)) }
	f = record.Filter{Client: text("client"), Tool: text("tool"), Questions: text("questions") != "", Failed: text("failed") != ""}
	if id := text("session"); id != "" {
		if f.Session = v.numberOf(id); f.Session == 0 {
			return f, fmt.Errorf("there is no session %s at present", line(id))
		}
	}
	return f, nil
}

// numberOf returns under which number the messages of a session are kept; 0: there is none.
func (v *View) numberOf(id string) uint64 {
	for _, m := range v.opt.Look() {
		for _, s := range m.Sessions {
			if s.ID == id {
				return s.Number
			}
		}
	}
	return 0
}

// turnRecording starts or stops it.
func (v *View) turnRecording(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	switch r.PostFormValue("do") {
	case "start":
		of, err := v.wanted(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		if err := v.opt.Recording.StartRecording(of); err != nil {
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
