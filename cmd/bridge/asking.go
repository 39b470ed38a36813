package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/ask"
	"github.com/mcpbridge/bridge/ask/model"
	"github.com/mcpbridge/bridge/ask/page"
	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/browser"
	"github.com/mcpbridge/bridge/internal/edge"
	"github.com/mcpbridge/bridge/internal/http1"
	"github.com/mcpbridge/bridge/internal/smallfile"
	"github.com/mcpbridge/bridge/rawjson"
)

// desks are the pages where people are asked for clients that cannot be: one at each
// public address that the settings name, and one on loopback for all that name none. They
// are made when they are first needed and stay until the process ends, so that links
// outlive a reload.
type desks struct {
	log  zerolog.Logger
	here bool // clients are on this machine, and so is a person with a browser

	roots  rootsByPath
	others pagesElsewhere

	mu     sync.Mutex
	aside  *edge.Aside                  // of local
	local  *page.Desk                   // nil until needed
	public atomic.Pointer[[]publicDesk] // the longest path first, of equal ones the newest; replaced, never changed, and every request reads it without the lock
}

// publicDesk is the page at a public address.
type publicDesk struct {
	base url.URL // without a slash at its end
	*page.Desk
}

// newDesks returns no pages yet. local says that all clients are on this machine.
func newDesks(local bool, environ []string, log zerolog.Logger) *desks {
	d := &desks{log: log, here: local && browser.Seen(environ)}
	d.public.Store(new([]publicDesk))
	return d
}

// maxQuestions bounds the questions that wait on one page.
const maxQuestions = 10_000

// desk returns the page at a public address; empty: the one on loopback.
func (d *desks) desk(address string) (*page.Desk, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if address == "" {
		return d.onLoopbackLocked()
	}
	base, err := url.Parse(strings.TrimSuffix(address, "/"))
	if err != nil {
		return nil, errors.New("questions.url is no address")
	}
	public := *d.public.Load()
	if i := slices.IndexFunc(public, func(p publicDesk) bool { return p.base == *base }); i >= 0 {
		return public[i].Desk, nil
	}
	desk := publicDesk{*base, page.New(base, maxQuestions, d.others.mark())}
	public = slices.Concat([]publicDesk{desk}, public)
	slices.SortStableFunc(public, func(a, b publicDesk) int { return len(b.base.Path) - len(a.base.Path) })
	d.public.Store(&public)
	return desk.Desk, nil
}

func (d *desks) onLoopbackLocked() (*page.Desk, error) {
	if d.local != nil {
		return d.local, nil
	}
	aside, err := edge.OpenAside(context.Background(), "questions", "127.0.0.1:0", edge.Files{}, d.log)
	if err != nil {
		return nil, err
	}
	base := &url.URL{Scheme: "http", Host: aside.Addr().String(), Path: "/questions"}
	d.aside, d.local = aside, page.New(base, maxQuestions, "")
	go func(desk *page.Desk) {
		if err := aside.Serve(desk); !errors.Is(err, http.ErrServerClosed) {
			d.log.Error().Err(err).Msg("the page for questions failed")
		}
	}(d.local)
	d.log.Info().Str("url", base.String()+"/").Msg("people at this machine are asked on a page")
	return d.local, nil
}

// stop ends the page on loopback.
func (d *desks) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.aside != nil {
		d.aside.Shutdown()
	}
}

// before serves the public pages, also those of other replicas, and has next serve everything
// else.
func (d *desks) before(next http.Handler) http.Handler {
	return d.serve(next, func(desk *page.Desk, w http.ResponseWriter, r *http.Request) {
		if !d.others.serve(desk, w, r) {
			desk.ServeHTTP(w, r)
		}
	})
}

// own serves the public pages of this process, and has next serve everything else.
func (d *desks) own(next http.Handler) http.Handler { return d.serve(next, (*page.Desk).ServeHTTP) }

// serve has at serve the public pages, and next everything else.
func (d *desks) serve(next http.Handler, at func(*page.Desk, http.ResponseWriter, *http.Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if desk := d.at(r); desk != nil {
			at(desk, w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// at returns the public page that a request is for, or nil. The address of one may be part of another's, or
// differ in what a request does not show: it is the page whose question the request names, else the first.
func (d *desks) at(r *http.Request) (first *page.Desk) {
	for _, desk := range *d.public.Load() {
		switch {
		case !desk.Has(r):
		case desk.Knows(r.URL.Path):
			return desk.Desk
		case first == nil:
			first = desk.Desk
		}
	}
	return first
}

// room returns who answers for the clients of a mount; nil: nobody.
func (d *desks) room(m *config.Mount) (*ask.Room, error) {
	opt := ask.Options{
		Server: calledAs(m), Policy: ask.Policy(m.Questions.Policy), Approve: m.Sampling.Approve == "on",
	}
	if m.Roots.Any() {
		opt.Roots = d.roots.of(m.Path, m.Roots)
	}
	var err error
	if m.Sampling.Provider != "off" {
		if opt.Model, err = newModel(&m.Sampling); err != nil {
			return nil, err
		}
	}
	if opt.Policy == ask.Page || opt.Approve && opt.Model != nil {
		if opt.Desk, err = d.desk(m.Questions.URL); err != nil {
			return nil, err
		}
		opt.Open = d.opener(&m.Questions, opt.Desk)
	}
	return ask.New(opt), nil
}

// opener returns what opens a question's page by itself; nil: nothing does.
func (d *desks) opener(q *config.Questions, desk *page.Desk) func(link string) {
	var command []string
	switch q.Open {
	case "off":
		return nil
	case "auto":
		if !d.here || !q.Local() {
			return nil
		}
	default:
		command = browserCommand(q.Open)
	}
	return func(link string) {
		if !desk.TakesTab(link) {
			return
		}
		if err := browser.Open(command, link); err != nil {
			d.log.Warn().Err(err).Msg("the page of a question cannot be opened (questions.open)")
		}
	}
}

func newModel(s *config.Sampling) (*model.Model, error) {
	key, err := modelKey(s)
	if err != nil {
		return nil, err
	}
	return model.New(model.Settings{
		Provider: s.Provider, URL: s.URL, Model: s.Model, Models: s.Models, Key: key,
		MaxTokens: s.MaxTokens, PerSession: s.PerSession, PerDay: s.PerDay, Timeout: s.Timeout,
	})
}

// modelKey reads the key for a model's API, "" without one.
func modelKey(s *config.Sampling) (string, error) {
	if s.KeyFile == "" {
		return "", nil
	}
	text, err := smallfile.Secret(s.KeyFile)
	if err != nil {
		return "", fmt.Errorf("sampling.key-file: %w", err)
	}
	key := strings.TrimSpace(string(text))
	if key == "" {
		return "", fmt.Errorf("sampling.key-file: %s is empty", s.KeyFile)
	}
	if strings.ContainsAny(key, "\r\n") || !http1.IsValue(key) {
		return "", fmt.Errorf("sampling.key-file: %s holds more than a key: several lines, or a character that headers cannot carry", s.KeyFile)
	}
	return key, nil
}

// instead says who answers for clients that cannot be asked; empty: nobody.
func instead(p *config.Policy) string {
	var who []string
	switch ask.Policy(p.Questions.Policy) {
	case ask.Page:
		who = append(who, "forms and URLs: a person on a page")
	case ask.Decline:
		who = append(who, "forms and URLs: declined")
	case ask.Default:
		who = append(who, "forms: their defaults")
	}
	if p.Sampling.Provider != "off" {
		who = append(who, "sampling: "+p.Sampling.Model)
	}
	if p.Roots.Any() {
		who = append(who, "roots: those of the configuration")
	}
	return strings.Join(who, "; ")
}

// calledAs is what people are told a server is called: its host, or its command.
func calledAs(m *config.Mount) string {
	if u, err := url.Parse(m.Upstream); err == nil && u.Host != "" {
		return u.Host
	}
	return target(m)
}

// waitsFor returns how long a client waits for a call, by what it calls itself.
func waitsFor(known map[string]time.Duration) func(clientInfo []byte) time.Duration {
	if len(known) == 0 {
		return nil
	}
	return func(clientInfo []byte) time.Duration {
		name, _ := rawjson.Text(rawjson.Get(clientInfo, "name"))
		best := ""
		for prefix := range known {
			if strings.HasPrefix(name, prefix) && len(prefix) >= len(best) {
				best = prefix
			}
		}
		return known[best]
	}
}
