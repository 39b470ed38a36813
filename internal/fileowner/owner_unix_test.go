//go:build unix

package fileowner

import (
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
)

// seen is a file as its metadata show it.
type seen struct {
	fs.FileInfo
	mode  fs.FileMode
	owner int
}

func (s seen) Mode() fs.FileMode { return s.mode }
func (s seen) Sys() any          { return &syscall.Stat_t{Uid: uint32(s.owner)} }

func TestWhoseAFileMustBe(t *testing.T) {
	own := os.Geteuid()
	other := own + 1
	for _, test := range []struct {
		name              string
		file              seen
		planted, writable bool
		exposed           string
	}{
		{"one's own", seen{mode: 0o600, owner: own}, false, false, ""},
		{"root's", seen{mode: 0o400, owner: 0}, false, false, ""},
		{"a secret of Kubernetes", seen{mode: 0o644, owner: 0}, false, false, "others may read F (mode 0644)"},
		{"the same with fsGroup", seen{mode: 0o440, owner: 0}, false, false, "others may read F (mode 0440)"},
		{"one's own on a volume with fsGroup", seen{mode: 0o660, owner: own}, false, false, "others may change F (mode 0660)"},
		{"somebody else's", seen{mode: 0o644, owner: other}, true, false, "belongs to another user"},
		{"somebody else's, hidden from others", seen{mode: 0o600, owner: other}, true, false, "belongs to another user"},
		{"everybody's", seen{mode: 0o666, owner: own}, true, true, "chmod 600 F"},
		{"root's, for everybody", seen{mode: 0o602, owner: 0}, true, true, ""},
		{"a pipe", seen{mode: fs.ModeNamedPipe | 0o666, owner: own}, false, false, ""},
	} {
		if err := Planted("F", test.file); (err != nil) != test.planted || err != nil && !strings.Contains(err.Error(), " F") {
			t.Errorf("%s: planted: %v", test.name, err)
		}
		if err := Writable("F", test.file); (err != nil) != test.writable {
			t.Errorf("%s: writable: %v", test.name, err)
		}
		if got := Exposed("F", test.file); !strings.Contains(got, test.exposed) || test.exposed == "" && got != "" {
			t.Errorf("%s: exposed: %q", test.name, got)
		}
	}
}
