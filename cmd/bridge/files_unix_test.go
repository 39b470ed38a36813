//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A store whose directory is missing is told of as that, not as keys with a name that nobody gave.
func TestTheDirectoryOfAStoreIsNamed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sub")
	want := "store.url: the directory " + dir + " does not exist; create it, writable for the bridge's user"
	if err := fails(t, nil, "config", "validate", configuration(t, "file:"+filepath.Join(dir, "s.db"), "")); err.Error() != want {
		t.Errorf("validate: %v", err)
	}
	if err := fails(t, nil, "serve", "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1/mcp", "--store.url", "file:"+filepath.Join(dir, "s.db")); err.Error() != want {
		t.Errorf("serve: %v", err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fails(t, nil, "config", "validate", configuration(t, "file:"+filepath.Join(dir, "s.db"), "")); err.Error() != "store.url: "+dir+" is no directory" {
		t.Errorf("of a file: %v", err)
	}
	if os.Geteuid() == 0 {
		return // who may write everywhere
	}
	locked := t.TempDir()
	if err := os.Chmod(locked, 0o500); err != nil {
		t.Fatal(err)
	}
	if err := fails(t, nil, "config", "validate", configuration(t, "file:"+filepath.Join(locked, "s.db"), "")); err.Error() != "store.url: no file can be made in "+locked+": permission denied" {
		t.Errorf("of one that is not ours: %v", err)
	}
}
