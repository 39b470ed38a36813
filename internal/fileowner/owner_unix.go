//go:build unix

package fileowner

import (
	"io/fs"
	"os"
	"syscall"
)

func of(info fs.FileInfo) file {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return file{}
	}
	owner := int(stat.Uid)
	return file{known: true, owner: owner, foreign: owner != 0 && owner != os.Geteuid()}
}
