// Package smallfile reads the files that settings name, all of which are texts: never more of one than
// it may hold, since a device or a pipe need have no end.
package smallfile

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/mcpbridge/bridge/internal/fileowner"
)

// Max bounds a file, in bytes: certificates of all authorities there are take a tenth of it.
const Max = 4 << 20

// TooLong is an error about a file of more bytes than that.
type TooLong int64

func (most TooLong) Error() string { return fmt.Sprintf("has more than %d bytes", int64(most)) }

// ErrUTF16 is an error about a text that is in UTF-16, as PowerShell 5 writes it.
var ErrUTF16 = errors.New("is in UTF-16; save it as UTF-8")

// plain returns a text without the mark that editors of Windows put before UTF-8. Of UTF-16 nothing could be made.
func plain(text []byte) ([]byte, error) {
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return nil, ErrUTF16
	}
	return bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), nil
}

// Read returns what a file holds, or a pipe until it is closed.
func Read(path string) ([]byte, error) { return UpTo(path, Max) }

// UpTo is Read with another bound. Nothing is said of whatever a longer file begins with.
func UpTo(path string, most int64) ([]byte, error) {
	return read(path, most, func(string, fs.FileInfo) error { return nil })
}

// Secret is Read for a file that holds one, unless everybody may write to it.
func Secret(path string) ([]byte, error) { return Trusted(path, fileowner.Writable) }

// Trusted is Read for a file that trust has no error for, that very one.
func Trusted(path string, trust func(path string, info fs.FileInfo) error) ([]byte, error) {
	return read(path, Max, trust)
}

func read(path string, most int64, trust func(string, fs.FileInfo) error) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil {
		err = trust(path, info)
	}
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s %w", path, TooLong(most))
	}
	if err != nil {
		return nil, err
	}
	if text, err = plain(text); err != nil {
		return nil, fmt.Errorf("%s %w", path, err)
	}
	return text, nil
}

// Pair reads a certificate chain and its private key, which is a secret.
func Pair(cert, key string) (tls.Certificate, error) {
	chain, err := Read(cert)
	if err != nil {
		return tls.Certificate{}, err
	}
	private, err := Secret(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(chain, private)
}

// MaxHanging bounds what is left behind of one file: a system call that hangs, as on a mount whose
// server is gone, can be ended by nobody and keeps a thread. More than one, since another file may
// stand there meanwhile, which the next one reads.
const MaxHanging = 4

// counts are of what SecretWithin has under way, by path.
type counts struct {
	mu    sync.Mutex
	paths map[string]int
}

var hanging counts

// SecretWithin is Secret for as long as ctx lasts.
func SecretWithin(ctx context.Context, path string) ([]byte, error) {
	if !begin(path) {
		return nil, fmt.Errorf("%s cannot be read: %d attempts to hang", path, MaxHanging)
	}
	type outcome struct {
		text []byte
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		defer end(path)
		text, err := Secret(path)
		done <- outcome{text, err}
	}()
	select {
	case o := <-done:
		return o.text, o.err
	case <-ctx.Done():
		return nil, fmt.Errorf("reading %s takes too long: %w", path, ctx.Err())
	}
}

func begin(path string) bool {
	hanging.mu.Lock()
	defer hanging.mu.Unlock()
	if hanging.paths[path] == MaxHanging {
		return false
	}
	if hanging.paths == nil {
		hanging.paths = map[string]int{}
	}
	hanging.paths[path]++
	return true
}

func end(path string) {
	hanging.mu.Lock()
	defer hanging.mu.Unlock()
	if hanging.paths[path]--; hanging.paths[path] == 0 {
		delete(hanging.paths, path)
	}
}
