package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/edge"
	"github.com/mcpbridge/bridge/internal/fleet"
	"github.com/mcpbridge/bridge/internal/smallfile"
)

// slowReload is after what time the log says that a reload takes long, and the next SIGHUP begins another one.
var slowReload = 5 * time.Second // tests are hasty

// reloading is a reload that reads its files, beside everything else, for they need have no end.
type reloading struct {
	done      chan *reloaded   // has room for its outcome, which nobody takes when it comes too late
	takesLong <-chan time.Time // nil: it has been said
}

// outcome and slow are for a select, also of none.
func (r *reloading) outcome() <-chan *reloaded {
	if r == nil {
		return nil
	}
	return r.done
}

func (r *reloading) slow() <-chan time.Time {
	if r == nil {
		return nil
	}
	return r.takesLong
}

// reloaded is a configuration that can take effect at once, or why it cannot.
type reloaded struct {
	cfg         config.Config
	change      *fleet.Change
	certificate func() // takes that of the listener
	err         error
}

// reload begins to read the configuration again. It takes effect as a whole or, when anything is wrong with
// it, not at all. Streams and sessions of mounts that did not change are left alone; those of the others go on
// under their old settings for a while.
func (s *service) reload() *reloading {
	r := &reloading{make(chan *reloaded, 1), time.After(slowReload)}
	if s.reading.Add(1) > smallfile.MaxHanging { // each that hangs keeps a thread
		s.reading.Add(-1)
		r.done <- &reloaded{err: fmt.Errorf("%d earlier reloads hang on a file", smallfile.MaxHanging)}
		return r
	}
	is := s.cfg
	go func() {
		defer s.reading.Add(-1)
		r.done <- s.prepare(&is)
	}()
	return r
}

// prepare reads everything that a reload needs, and changes nothing. is what is obeyed at present.
func (s *service) prepare(is *config.Config) *reloaded {
	cfg, err := s.load()
	if err != nil {
		return &reloaded{err: err}
	}
	keepUntilRestart(s.log, &cfg, is)
	change, err := s.fleet.Prepare(specs(&cfg, s.with, s.log))
	if err != nil {
		return &reloaded{err: err}
	}
	certificate, err := s.edge.Certificate(edge.Files(cfg.TLS))
	if err != nil {
		change.Discard()
		return &reloaded{err: err}
	}
	return &reloaded{cfg, change, certificate, nil}
}

// obey makes what was read take effect.
func (s *service) obey(r *reloaded) {
	if r.err != nil {
		s.refuse(r.err)
		return
	}
	r.certificate()
	setLevel(r.cfg.Log.Level)
	s.edge.Trust(proxies(&r.cfg, s.log))
	s.cfg = r.cfg
	s.with.pages.roots.set(&r.cfg)
	r.change.Commit(r.cfg.Timeouts.Handover, r.cfg.Timeouts.Drain)
	s.with.admin.reloaded(true)
}

// abandon has a reload, or nil, end by itself, for nothing; done is closed then.
func (r *reloading) abandon() (done <-chan struct{}) {
	ended := make(chan struct{})
	if r == nil {
		close(ended)
		return ended
	}
	go func() {
		defer close(ended)
		if late := <-r.done; late.err == nil {
			late.change.Discard()
		}
	}()
	return ended
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
func keepUntilRestart(log zerolog.Logger, cfg, is *config.Config) {
	keep(log, "listen", &cfg.Listen, is.Listen)
	keep(log, "http", &cfg.HTTP, is.HTTP)
	keep(log, "park", &cfg.Park, is.Park)
	keep(log, "heap-floor", &cfg.HeapFloor, is.HeapFloor)
	keep(log, "huge-pages", &cfg.HugePages, is.HugePages)
	keep(log, "admin", &cfg.Admin, is.Admin)
	keep(log, "metrics", &cfg.Metrics, is.Metrics)
	keep(log, "record", &cfg.Record, is.Record)
	keep(log, "store", &cfg.Store, is.Store)
	keep(log, "limits.memory", &cfg.Limits.Memory, is.Limits.Memory)
	keep(log, "replica", &cfg.Replica, is.Replica)
	keep(log, "log.format", &cfg.Log.Format, is.Log.Format)
	if (cfg.TLS.Cert == "") != (is.TLS.Cert == "") {
		keep(log, "tls.cert", &cfg.TLS, is.TLS)
	}
}

// keep has a setting stay what it is until the next start.
func keep[T comparable](log zerolog.Logger, key string, setting *T, is T) {
	if *setting != is {
		log.Warn().Str("setting", key).Msg("has changed, which takes effect after a restart")
		*setting = is
	}
}
