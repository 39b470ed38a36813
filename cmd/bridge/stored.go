package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/fleet"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/sessions/store"
)

// stored shows on the admin listener what the store keeps: a file is for the process alone that
// has it open.
type stored struct {
	store   store.Store
	mounts  *fleet.Fleet
	actions bool // sessions may be ended
	log     zerolog.Logger
}

const (
	storedList = "/api/v1/stored"
	storedEnd  = "/api/v1/stored/end"

	mostEnded = 64 << 10 // bytes of names
)

func (s *stored) handle(mux *http.ServeMux) {
	if s.store == nil {
		return
	}
	mux.HandleFunc("GET "+storedList, func(w http.ResponseWriter, r *http.Request) {
		var text bytes.Buffer
		s.reply(w, &text, listStored(r.Context(), s.store, &text))
	})
	mux.HandleFunc("POST "+storedEnd, s.end)
}

// end ends sessions, in memory as well as in the store.
func (s *stored) end(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, mostEnded)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "names are missing", http.StatusBadRequest)
		return
	}
	if !s.actions {
		http.Error(w, "admin.actions is off", http.StatusForbidden)
		return
	}
	names := r.PostForm["name"]
	var text bytes.Buffer
	err := endStored(r.Context(), s.store, names, s.endHere, &text)
	logfield.Each(s.log.Warn()).Strs("stored", names).Err(err).Msg("stored sessions were ended on the admin listener")
	s.reply(w, &text, err)
}

// endHere ends a session with what its server still does for it, which its records say.
func (s *stored) endHere(name string) {
	for _, p := range s.mounts.Places() {
		for _, m := range p.All() {
			m.EndStored(name)
		}
	}
}

// storedReply is what was done, and what failed.
type storedReply struct {
	Text  string `json:"text"`
	Error string `json:"error,omitempty"`
}

func (s *stored) reply(w http.ResponseWriter, text *bytes.Buffer, err error) {
	answer := storedReply{Text: text.String()}
	if err != nil {
		answer.Error = err.Error()
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// stored prints what a running bridge's store keeps.
func (l *looker) stored(ctx context.Context, out io.Writer) error {
	return l.tellStored(ctx, http.MethodGet, storedList, "", out)
}

// endStored has a running bridge end sessions.
func (l *looker) endStored(ctx context.Context, names []string, out io.Writer) error {
	return l.tellStored(ctx, http.MethodPost, storedEnd, url.Values{"name": names}.Encode(), out)
}

func (l *looker) tellStored(ctx context.Context, method, path, form string, out io.Writer) error {
	var answer storedReply
	if err := l.ask(ctx, method, path, strings.NewReader(form), &answer); err != nil {
		return err
	}
	if _, err := io.WriteString(out, answer.Text); err != nil {
		return err
	}
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	return nil
}

// errNothingStored explains a 404 of a bridge.
var errNothingStored = errors.New("that bridge keeps its sessions in memory")
