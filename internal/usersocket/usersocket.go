// Package usersocket owns the sockets on which programs of one user find each other:
// where they are, who may enter the directory, and the removal of those whose program
// is gone. It knows nothing of what is said on them.
package usersocket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Dirs returns where sockets of the user may be, the first choice first.
func Dirs(environ func(string) string) []string {
	var dirs []string
	if dir := environ("XDG_RUNTIME_DIR"); dir != "" {
		dirs = append(dirs, filepath.Join(dir, "mcp-bridge"))
	}
	dirs = append(dirs, filepath.Join(os.TempDir(), "mcp-bridge-"+strconv.Itoa(os.Getuid())))
	if dir, err := os.UserCacheDir(); err == nil {
		dirs = append(dirs, filepath.Join(dir, "mcp-bridge", "run"))
	}
	return dirs
}

// Listen opens the socket of this process in the first directory where that can be
// done. Nobody but the user can reach it. Closing the listener removes it.
func Listen(ctx context.Context, dirs []string) (net.Listener, error) {
	var failed []error
	for _, dir := range dirs {
		listener, err := listen(ctx, dir)
		if err == nil {
			return listener, nil
		}
		failed = append(failed, err)
	}
	return nil, errors.Join(failed...)
}

func listen(ctx context.Context, dir string) (net.Listener, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := private(dir); err != nil {
		return nil, err
	}
	Find(ctx, dir) // removes what others left behind
	path := filepath.Join(dir, prefix+strconv.Itoa(os.Getpid())+suffix)
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// private reports why a directory is not the user's alone. The directory for temporary
// files is everybody's: somebody else could have made this one.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || !owned(info) {
		return fmt.Errorf("%s is not a directory of this user", dir)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s can be entered by others; make its mode 0700", dir)
	}
	return nil
}

const (
	prefix = "stdio-"
	suffix = ".sock"
	knock  = time.Second // how long a socket may take to answer
)

// Socket is that of a running program.
type Socket struct {
	Path string
	PID  int
}

// Find returns the sockets in a directory on which a program answers, and removes the
// others. There are none in a directory that is not the user's alone.
func Find(ctx context.Context, dir string) []Socket {
	var found []Socket
	if private(dir) != nil {
		return nil
	}
	paths, _ := filepath.Glob(filepath.Join(dir, prefix+"*"+suffix)) // the pattern is right
	for _, path := range paths {
		pid, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), prefix), suffix))
		if err != nil || !answers(ctx, path) {
			continue
		}
		found = append(found, Socket{path, pid})
	}
	return found
}

// answers reports whether a program listens on a socket, and removes it if its program
// is gone.
func answers(ctx context.Context, path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, knock)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(path)
		}
		return false
	}
	_ = conn.Close()
	return true
}
