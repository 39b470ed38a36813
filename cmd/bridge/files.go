package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/edge"
	"github.com/mcpbridge/bridge/internal/smallfile"
	"github.com/mcpbridge/bridge/observe/admin"
	"github.com/mcpbridge/bridge/observe/report"
	"github.com/mcpbridge/bridge/observe/traces"
	"github.com/mcpbridge/bridge/sessions/store"
)

// look is one at files or directories that settings name. What it reports names the setting.
type look struct {
	files []string
	at    func() error
}

// again reports whether a look tells a second time what it did the first time: a pipe has been read by then.
func (l *look) again() bool {
	for _, file := range l.files {
		if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
			return false
		}
	}
	return true
}

// looks are those at all that serve needs to start, but for what is in its store.
func looks(cfg *config.Config, environ []string) []look {
	list := append(processLooks(cfg), look{at: func() error {
		tracer, err := traces.FromEnviron(func(name string) string { return variable(environ, name) }, versionText())
		tracer.Close()
		return err
	}})
	for _, m := range cfg.Mounts() {
		list = append(list, mountLooks(&m)...)
	}
	return list
}

// processLooks are at what the settings of the process name. Where a certificate is named without its key, or the
// reverse, config has said so.
func processLooks(cfg *config.Config) (list []look) {
	if cfg.TLS.Key != "" {
		list = append(list, look{[]string{cfg.TLS.Cert, cfg.TLS.Key}, edge.Files(cfg.TLS).Check})
	}
	list = append(list, look{at: func() error { return edge.CheckSocket("--listen", cfg.Listen) }},
		look{at: func() error { return edge.CheckSocket("--admin.listen", cfg.Admin.Listen) }})
	if a := &cfg.Admin; a.Listen != "" {
		list = append(list, look{[]string{a.TokenFile}, func() error { _, err := admin.NewToken(a.TokenFile); return err }})
		if a.TLS.Key != "" {
			list = append(list, look{[]string{a.TLS.Cert, a.TLS.Key}, func() error { return about("admin.", edge.Files(a.TLS).Check()) }})
		}
	}
	if file := cfg.Admin.Report; file != "" {
		list = append(list, look{[]string{file}, func() error { _, err := report.Open(file); return about("admin.report: ", err) }})
	}
	if dir := cfg.Record; dir != "" {
		list = append(list, look{[]string{dir}, func() error { return about("record: ", checkTarget(dir)) }})
	}
	return list
}

// mountLooks are at what the settings of a mount name.
func mountLooks(m *config.Mount) (list []look) {
	add := func(at func() error, files ...string) {
		list = append(list, look{files, func() error { return about(m.Path+": ", at()) }})
	}
	auth, trust := &m.Auth, &m.UpstreamTLS
	if len(m.Command) == 0 || auth.Mode == "terminate" { // else it reaches nobody
		add(func() error { _, err := authorities(trust); return err }, trust.CA, trust.CAOnly)
		if trust.Key != "" {
			add(func() error { _, err := ownPair(trust); return err }, trust.Cert, trust.Key)
		}
	}
	if m.Sampling.Provider != "off" {
		add(func() error { _, err := modelKey(&m.Sampling); return err }, m.Sampling.KeyFile)
	}
	if signsIn(auth) {
		add(func() error { _, err := secretOf(auth); return err }, auth.ClientSecretFile)
		add(func() error { _, err := clientKeyOf(auth); return err }, auth.ClientKey)
	}
	if auth.Mode == "agent" && auth.Dir != "" {
		add(func() error { return about("auth.dir: ", checkWritable(existing(auth.Dir))) }, auth.Dir)
	}
	return list
}

// storeLook is at the files that a store needs, without opening it.
func storeLook(s config.Store) look {
	kind, path := s.Kind()
	return look{[]string{s.Keys}, func() error {
		if kind == "file" {
			if err := checkDirectory(filepath.Dir(path)); err != nil {
				return about("store.url: ", err)
			}
		}
		if kind == "memory" || s.Keys == "" {
			return nil
		}
		_, err := store.ReadKeys(s.Keys)
		return about("store.keys: ", err)
	}}
}

// about says which setting, or which mount, an error is about.
func about(where string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s%w", where, err)
}

// explained returns why serve or stdio could not begin: everything that is wrong with the files that were to be
// read, if anything is, as a mistake of the configuration. Else it is what failed.
func explained(list []look, failed error) error {
	found, _ := reading(func() ([]config.Problem, error) {
		var found []config.Problem
		for _, l := range list {
			if !l.again() {
				continue
			}
			if err := l.at(); err != nil {
				found = append(found, config.Problem{Text: err.Error()})
			}
		}
		return found, nil
	})
	if len(found) == 0 {
		return failed
	}
	return &config.Error{Problems: found}
}

// later tells of files that are needed only when the bridge has begun, and may not be there yet.
func later(cfg *config.Config) (notes []string) {
	for _, m := range cfg.Mounts() {
		if len(m.Command) > 0 {
			if _, err := exec.LookPath(m.Command[0]); err != nil {
				notes = append(notes, m.Path+": command: there is no program "+target(&m)+" for this user; serve begins without it, and keeps trying")
			}
		}
		if file := m.Auth.IDP.TokenFile; file != "" && signsIn(&m.Auth) && m.Auth.Grant == "enterprise" {
			if _, err := smallfile.Secret(file); err != nil {
				notes = append(notes, m.Path+": auth.idp.token-file: "+err.Error())
			}
		}
	}
	return notes
}

// existing returns a directory, or the nearest one above it that is there.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// checkTarget looks whether a directory is there, and takes files.
func checkTarget(dir string) error {
	if err := checkDirectory(dir); err != nil {
		return err
	}
	return checkWritable(dir)
}

// checkDirectory looks whether a directory is there.
func checkDirectory(dir string) error {
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the directory %s does not exist; create it, writable for the bridge's user", dir)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no directory", dir)
	}
	return nil
}

// checkWritable looks whether files can be made in a directory.
func checkWritable(dir string) error {
	probe, err := os.CreateTemp(dir, ".mcp-bridge-*")
	if err != nil {
		if cause, ok := errors.AsType[*fs.PathError](err); ok {
			err = cause.Err // the file that it names has a name of no meaning
		}
		return fmt.Errorf("no file can be made in %s: %w", dir, err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}
