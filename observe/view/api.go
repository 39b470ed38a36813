package view

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/mcpbridge/bridge/observe/record"
)

// State is what goes on, as programs read it. Times of waits are in seconds.
type State struct {
	Version  string         `json:"version"`
	Mounts   []MountState   `json:"mounts"`
	Calls    []CallState    `json:"calls"`    // those that somebody should look at first, then the longest waits
	Sessions []SessionState `json:"sessions"` // the same way
	// More is how many calls and sessions are not listed.
	MoreCalls    int `json:"moreCalls,omitempty"`
	MoreSessions int `json:"moreSessions,omitempty"`
}

// MountState is one mount.
type MountState struct {
	Path     string `json:"path"`
	Target   string `json:"target"`
	Ready    bool   `json:"ready"`
	Said     string `json:"said"`
	Why      string `json:"why"`
	Grave    bool   `json:"grave"`
	Sessions int    `json:"sessions"`
	Limit    int    `json:"limit,omitempty"`
	Earlier  int    `json:"earlier,omitempty"` // sessions under settings of before a reload
	Removed  bool   `json:"removed,omitempty"` // a reload took it out
}

// CallState is one call under way.
type CallState struct {
	Mount   string  `json:"mount"`
	Session string  `json:"session"`
	Client  string  `json:"client"`
	ID      string  `json:"id"`
	Method  string  `json:"method"`
	Name    string  `json:"name,omitempty"`
	Round   int     `json:"round"`
	Who     string  `json:"who"`
	Waited  float64 `json:"waited"`
	Left    float64 `json:"left"`
	Why     string  `json:"why"`
	Grave   bool    `json:"grave"`
}

// SessionState is one session.
type SessionState struct {
	Mount     string  `json:"mount"`
	ID        string  `json:"id"`
	Number    uint64  `json:"number"` // under which its messages are
	Client    string  `json:"client"`
	Version   string  `json:"version"`
	Transport string  `json:"transport"`
	Age       float64 `json:"age"`
	Calls     int     `json:"calls"`
	Why       string  `json:"why"`
	Grave     bool    `json:"grave"`
	Earlier   bool    `json:"earlier,omitempty"` // under settings of before a reload
}

// state serves what goes on as JSON.
func (v *View) state(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v.State())
}

// State reads what goes on.
func (v *View) State() State {
	mounts := v.look()
	s := State{Version: v.opt.Version, Mounts: []MountState{}, Calls: []CallState{}, Sessions: []SessionState{}}
	for i := range mounts {
		m := &mounts[i]
		s.Mounts = append(s.Mounts, MountState{m.Path, m.Target, m.Ready, m.Said, m.Diagnosis.Whole() + left(m.Omissions), m.Diagnosis.Grave, len(m.All), m.Limit, m.Earlier, m.Removed})
	}
	calls, sessions := flows(mounts), ranked(mounts, (&filter{}).wants)
	s.MoreCalls, s.MoreSessions = max(0, len(calls)-mostRows), max(0, len(sessions)-mostRows)
	for _, f := range calls[:min(len(calls), mostRows)] {
		s.Calls = append(s.Calls, callState(f))
	}
	now := time.Now()
	for _, one := range sessions[:min(len(sessions), mostRows)] {
		s.Sessions = append(s.Sessions, SessionState{one.Mount, one.ID, one.Number, one.Client, string(one.Version), one.Transport.String(),
			now.Sub(one.Began).Seconds(), len(one.Flows), one.Diagnosis.Whole(), one.Diagnosis.Grave, one.Earlier})
	}
	return s
}

func callState(f *flow) CallState {
	return CallState{
		Mount: f.Session.Mount, Session: f.Session.ID, Client: f.Session.Client, ID: f.ID, Method: f.Method, Name: line(f.Name), Round: f.Rounds(),
		Who: f.Diagnosis.Who, Waited: f.Waited().Seconds(), Left: f.left().Seconds(), Why: f.Diagnosis.Whole(), Grave: f.Diagnosis.Grave,
	}
}

// Seen is a message, as programs read it.
type Seen struct {
	Seq uint64 `json:"seq"`
	ID  string `json:"id,omitempty"`
	record.Line
}

// events serves the messages after a number, the oldest first, and has more kept while
// somebody asks.
func (v *View) events(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64)
	seen := []Seen{}
	for _, e := range v.opt.After(after) {
		l := record.LineOf(&e)
		l.Message = nil // what messages say stays on the pages
		seen = append(seen, Seen{e.Seq, e.ID, l})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(seen)
}

// export sends the messages of a session as a recording.
func (v *View) export(w http.ResponseWriter, r *http.Request) {
	s := v.find(r)
	if s == nil {
		http.Error(w, "no such session", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Content-Disposition", `attachment; filename="session-`+strconv.FormatUint(s.Number, 10)+`.jsonl"`)
	lines := json.NewEncoder(w)
	err := lines.Encode(record.Head{Format: record.Format, Version: record.Version, Bridge: v.opt.Version, Payloads: v.opt.Payloads})
	for _, e := range v.opt.Messages(s.Number) {
		if err != nil {
			return // it is gone
		}
		err = lines.Encode(record.LineOf(&e))
	}
}
