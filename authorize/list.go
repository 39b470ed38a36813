package authorize

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"time"
)

// Entry is one kept login, as far as it can be told without its secrets.
type Entry struct {
	Server, Issuer string
	Scopes         []string
	Expires        time.Time
	Active, Renews bool
	Sealed         bool
	Loose          bool // other users of the machine may read the file
	File           string
	Problem        string // why nothing of this can be told; "" if it can
}

// List returns the logins that are kept in a directory, by server.
func List(dir string) ([]Entry, error) {
	s := &store{dir: dir, mode: "file"}
	names, err := s.names("", loginFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var found []Entry
	for _, name := range names {
		var l Login
		if err := s.read(name, &l, nil); err != nil {
			found = append(found, Entry{File: s.path(name), Problem: err.Error()})
			continue
		}
		var file envelope
		if text, err := os.ReadFile(s.path(name)); err == nil {
			_ = json.Unmarshal(text, &file) // read has done so before
		}
		found = append(found, Entry{Server: l.Server, Issuer: l.Issuer, Scopes: l.Granted, Expires: l.Expires, Active: l.Active, Renews: l.Renews, Sealed: file.Sealed != nil, Loose: loose(s.path(name)), File: s.path(name)})
	}
	slices.SortFunc(found, func(a, b Entry) int { return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Issuer, b.Issuer)) })
	return found, err
}

// loose reports whether others than its owner may read a file.
func loose(path string) bool {
	info, err := os.Stat(path)
	return err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0
}
