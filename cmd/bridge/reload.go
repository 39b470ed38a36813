package main

import (
	"errors"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/edge"
)

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
	change, err := s.fleet.Prepare(specs(&cfg, s.with, s.log))
	if err != nil {
		s.refuse(err)
		return
	}
	if err := s.edge.Renew(edge.Files(cfg.TLS)); err != nil {
		change.Discard()
		s.refuse(err)
		return
	}
	setLevel(cfg.Log.Level)
	s.edge.Trust(proxies(&cfg, s.log))
	s.cfg = cfg
	s.with.pages.roots.set(&cfg)
	change.Commit(cfg.Timeouts.Handover, cfg.Timeouts.Drain)
	s.with.admin.reloaded(true)
}

func (s *service) refuse(err error) {
	s.with.admin.reloaded(false)
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
	keep(s, "listen", &cfg.Listen, s.cfg.Listen)
	keep(s, "http", &cfg.HTTP, s.cfg.HTTP)
	keep(s, "park", &cfg.Park, s.cfg.Park)
	keep(s, "heap-floor", &cfg.HeapFloor, s.cfg.HeapFloor)
	keep(s, "admin", &cfg.Admin, s.cfg.Admin)
	keep(s, "metrics", &cfg.Metrics, s.cfg.Metrics)
	keep(s, "record", &cfg.Record, s.cfg.Record)
	keep(s, "store", &cfg.Store, s.cfg.Store)
	keep(s, "limits.memory", &cfg.Limits.Memory, s.cfg.Limits.Memory)
	keep(s, "replica", &cfg.Replica, s.cfg.Replica)
	keep(s, "log.format", &cfg.Log.Format, s.cfg.Log.Format)
	if (cfg.TLS.Cert == "") != (s.cfg.TLS.Cert == "") {
		keep(s, "tls.cert", &cfg.TLS, s.cfg.TLS)
	}
}

// keep has a setting stay what it is until the next start.
func keep[T comparable](s *service, key string, setting *T, is T) {
	if *setting != is {
		s.log.Warn().Str("setting", key).Msg("has changed, which takes effect after a restart")
		*setting = is
	}
}
