//go:build unix

package usersocket

import (
	"io/fs"
	"os"
	"syscall"
)

func owned(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
