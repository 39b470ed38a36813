package authorize

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/authorize/sealed"
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
	s := sealed.Existing(dir)
	names, err := s.Names("", loginFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var found []Entry
	for _, name := range names {
		var l Login
		if err := s.Read(name, &l, nil); err != nil {
			found = append(found, Entry{File: s.Path(name), Problem: err.Error()})
			continue
		}
		found = append(found, Entry{Server: l.Server, Issuer: l.Issuer, Scopes: l.Granted, Expires: l.Expires, Active: l.Active, Renews: l.Renews, Sealed: s.IsSealed(name), Loose: loose(s.Path(name)), File: s.Path(name)})
	}
	slices.SortFunc(found, func(a, b Entry) int { return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Issuer, b.Issuer)) })
	return found, err
}

// loose reports whether others than its owner may read a file.
func loose(path string) bool {
	info, err := os.Stat(path)
	return err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0
}
