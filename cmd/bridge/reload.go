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
	s.edge.Trust(proxies(&cfg))
	s.cfg = cfg
	change.Commit(cfg.Timeouts.Handover, cfg.Timeouts.Drain)
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
	if cfg.Admin != s.cfg.Admin {
		warn("admin")
		cfg.Admin = s.cfg.Admin
	}
	if cfg.Store != s.cfg.Store {
		warn("store")
		cfg.Store = s.cfg.Store
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
