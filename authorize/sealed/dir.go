// Package sealed keeps small files that all processes of a person share. Each appears whole
// and readable by that person only; what is secret in it is sealed with a key of the
// keyring, where there is one. It knows nothing of what the files say.
package sealed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/clip"
	"github.com/mcpbridge/bridge/internal/fileowner"
)

// Dir is a directory of such files.
type Dir struct {
	dir  string
	mode string // auto, file, keyring
	ring Keyring
	log  zerolog.Logger

	mu     sync.Mutex
	sealer *sealer
	plain  bool // auto found no keyring, and has said so

	asked    time.Time // when the keyring was asked last for what is sealed
	unopened error     // what came of it
}

// envelope is the form of every file that holds secrets.
type envelope struct {
	Version int             `json:"version"`
	Kind    string          `json:"kind"` // login or pending
	Open    json.RawMessage `json:"open,omitempty"`
	Plain   json.RawMessage `json:"secrets,omitempty"`
	Sealed  []byte          `json:"sealed,omitempty"`
}

// Versions of files. What is sealed in one of the first is bound to its name only: it is
// opened, and what is written in its place is bound to the open part as well.
const (
	plainVersion  = 1
	sealedVersion = 2
)

// bound is what the sealed part of a file is bound to, so that nobody without the key
// can have secrets sent to where another open part says.
func (e *envelope) bound(name string) string {
	var open bytes.Buffer
	if e.Version < sealedVersion || json.Compact(&open, e.Open) != nil {
		return name
	}
	return name + "\x00" + open.String()
}

// ErrSealed is about a file whose key is not to be had.
var ErrSealed = errors.New("the login is sealed with a key of the keyring, which cannot be opened")

// Options says where the files are, and how they are sealed.
type Options struct {
	Path string
	Mode string // auto, file, keyring
	Keys Keyring
	Log  zerolog.Logger
}

// Open returns a directory, which it makes if need be.
func Open(opt Options) (*Dir, error) {
	if err := os.MkdirAll(opt.Path, 0o700); err != nil {
		return nil, err
	}
	return &Dir{dir: opt.Path, mode: opt.Mode, ring: opt.Keys, log: opt.Log}, nil
}

// Existing returns a directory of which only what is open will be read.
func Existing(path string) *Dir { return &Dir{dir: path, mode: "file"} }

// Path is that of a file of the directory.
func (d *Dir) Path(name string) string { return filepath.Join(d.dir, name) }

// Write keeps open and secret under a name. The file appears whole, with its
// final mode, or not at all.
func (d *Dir) Write(name, kind string, open, secret any) error {
	file := envelope{Version: plainVersion, Kind: kind}
	var err error
	if file.Open, err = json.Marshal(open); err != nil {
		return err
	}
	text, err := json.Marshal(secret)
	if err != nil {
		return err
	}
	sealer, err := d.seal()
	if err != nil {
		return err
	}
	if sealer == nil {
		file.Plain = text
	} else {
		file.Version = sealedVersion
		file.Sealed = sealer.seal(text, file.bound(name))
	}
	all, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return err
	}
	return d.Replace(name, all)
}

// Replace gives a file other content. It appears whole, with its final mode, or not at all.
func (d *Dir) Replace(name string, content []byte) error {
	tmp, err := os.CreateTemp(d.dir, ".new-*") // 0600
	if err != nil {
		return fmt.Errorf("the login cannot be kept: %w", err)
	}
	_, err = tmp.Write(content)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), d.Path(name))
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
		return fmt.Errorf("the login cannot be kept: %w", err)
	}
	return nil
}

// Read is the reverse of Write. A secret of nil reads the open part only.
func (d *Dir) Read(name string, open, secret any) error {
	file, err := d.file(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(file.Open, open); err != nil || secret == nil {
		return err
	}
	if file.Sealed == nil && d.mode == "keyring" {
		return fmt.Errorf("%s is not sealed, as auth.store keyring wants it", name)
	}
	if file.Sealed != nil {
		sealer, err := d.unseal()
		if err != nil {
			return fmt.Errorf("%w (%s)", ErrSealed, clip.Line(err.Error()))
		}
		if file.Plain, err = sealer.open(file.Sealed, file.bound(name)); err != nil {
			return fmt.Errorf("%w (%s)", ErrSealed, clip.Line(err.Error()))
		}
	}
	return json.Unmarshal(file.Plain, secret)
}

// file reads a file as it is.
func (d *Dir) file(name string) (*envelope, error) {
	text, err := d.Content(name)
	if err != nil {
		return nil, err
	}
	file := &envelope{}
	if err := json.Unmarshal(text, file); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", name, err)
	}
	if file.Version > sealedVersion {
		return nil, fmt.Errorf("%s was written by a newer version of the bridge", name)
	}
	return file, nil
}

// Content returns what is in a file, unless another user may have put it there.
func (d *Dir) Content(name string) ([]byte, error) {
	f, err := os.Open(d.Path(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = fileowner.Planted(d.Path(name), info)
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

// IsSealed reports whether the secrets of a file are sealed.
func (d *Dir) IsSealed(name string) bool {
	file, err := d.file(name)
	return err == nil && file.Sealed != nil
}

// Names lists the files whose names begin and end so, in order.
func (d *Dir) Names(prefix, suffix string) ([]string, error) {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), suffix) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// lockEvery is how often a lock that another process holds is tried.
const lockEvery = 50 * time.Millisecond

// Lock waits for a lock, which is a file. The system lets go of it when this process
// dies, so nothing is ever stale.
func (d *Dir) Lock(ctx context.Context, name string) (unlock func(), err error) {
	l := flock.New(d.Path(name), flock.SetPermissions(0o600))
	if _, err := l.TryLockContext(ctx, lockEvery); err != nil {
		return nil, err
	}
	return func() { _ = l.Close() }, nil
}

// TryLock takes a lock if it is free.
func (d *Dir) TryLock(name string) (unlock func(), ok bool, err error) {
	l := flock.New(d.Path(name), flock.SetPermissions(0o600))
	if ok, err = l.TryLock(); err != nil || !ok {
		return nil, false, err
	}
	return func() { _ = l.Close() }, true, nil
}
