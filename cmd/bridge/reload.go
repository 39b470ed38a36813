package main

import (
	"crypto/sha256"
	"errors"
	"os"
	"reflect"
	"slices"

	"github.com/mcpbridge/bridge/config"
)

// identity is everything that a front was made from: one with an equal identity
// need not be made anew.
type identity struct {
	settings config.Mount
	hosts    []string
	origins  []string
	files    [sha256.Size]byte // the contents of those that settings name
}

func identify(cfg *config.Config, m *config.Mount) identity {
	settings := *m
	// These are the process's, and obeyed at once.
	settings.Timeouts.Drain, settings.Timeouts.Handover = 0, 0
	digest := sha256.New()
	for _, name := range []string{m.UpstreamTLS.CA, m.UpstreamTLS.Cert, m.UpstreamTLS.Key} {
		text, _ := os.ReadFile(name) // a missing file fails the front itself
		sum := sha256.Sum256(text)
		digest.Write(sum[:])
	}
	return identity{settings, allowedHosts(cfg), cfg.AllowedOrigins, [sha256.Size]byte(digest.Sum(nil))}
}

// reload reads the configuration again and makes it take effect, as a whole or,
// when anything is wrong with it, not at all. Streams and sessions of mounts that
// did not change are left alone; those of the others go on under their old
// settings for a while.
func (s *service) reload() {
	cfg, err := s.load()
	if err != nil {
		s.refuse(err)
		return
	}
	s.keepUntilRestart(&cfg)
	fronts, fresh, err := s.renew(&cfg)
	if err == nil && s.certificate != nil {
		err = s.certificate.replace(cfg.TLS)
	}
	if err != nil {
		closeAll(fresh)
		s.refuse(err)
		return
	}
	setLevel(cfg.Log.Level)
	s.addresses.trust(&cfg)
	for _, f := range fresh {
		f.watch()
	}
	before := s.board.fronts()
	s.cfg = cfg
	s.board.replace(fronts, cfg.Timeouts.Handover, cfg.Timeouts.Drain)
	s.summarize(before, fronts)
}

func (s *service) refuse(err error) {
	if wrong, ok := errors.AsType[*config.Error](err); ok {
		for _, p := range wrong.Problems {
			s.log.Error().Msg(p.String())
		}
	} else {
		s.log.Error().Msg(err.Error())
	}
	s.log.Error().Msg("the configuration was not reloaded: nothing has changed")
}

// keepUntilRestart takes back what only a new process can obey, and says so.
func (s *service) keepUntilRestart(cfg *config.Config) {
	warn := func(key string) {
		s.log.Warn().Str("setting", key).Msg("has changed, which takes effect after a restart")
	}
	if cfg.Listen != s.cfg.Listen {
		warn("listen")
		cfg.Listen = s.cfg.Listen
	}
	if cfg.Log.Format != s.cfg.Log.Format {
		warn("log.format")
		cfg.Log.Format = s.cfg.Log.Format
	}
	if (cfg.TLS.Cert == "") != (s.cfg.TLS.Cert == "") {
		warn("tls.cert")
		cfg.TLS = s.cfg.TLS
	}
}

// renew returns the fronts of a configuration: those that are there already
// where nothing changed, and fresh ones.
func (s *service) renew(cfg *config.Config) (fronts, fresh []*front, err error) {
	present := s.board.fronts()
	for _, m := range cfg.Mounts() {
		id := identify(cfg, &m)
		at := slices.IndexFunc(present, func(f *front) bool { return reflect.DeepEqual(f.identity, id) })
		if at >= 0 {
			fronts = append(fronts, present[at])
			continue
		}
		f, err := newFront(cfg, m, s.log)
		if err != nil {
			return nil, fresh, mountError(m.Path, err)
		}
		fronts, fresh = append(fronts, f), append(fresh, f)
	}
	return fronts, fresh, nil
}

// summarize says which mounts a reload changed.
func (s *service) summarize(before, after []*front) {
	var added, changed, removed, kept []string
	for _, f := range after {
		old := slices.IndexFunc(before, func(b *front) bool { return b.settings.Path == f.settings.Path })
		switch {
		case slices.Contains(before, f):
			kept = append(kept, f.settings.Path)
		case old >= 0:
			changed = append(changed, f.settings.Path)
		default:
			added = append(added, f.settings.Path)
		}
	}
	for _, b := range before {
		if !slices.ContainsFunc(after, func(f *front) bool { return f.settings.Path == b.settings.Path }) {
			removed = append(removed, b.settings.Path)
		}
	}
	event := s.log.Info()
	for name, paths := range map[string][]string{"added": added, "changed": changed, "removed": removed, "kept": kept} {
		if len(paths) > 0 {
			event.Strs(name, paths)
		}
	}
	event.Msg("the configuration was reloaded")
}
