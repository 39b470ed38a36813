package store

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/mcpbridge/bridge/internal/fileowner"
	"github.com/mcpbridge/bridge/internal/smallfile"
)

// KeySize is the length of a key in bytes.
const KeySize = 32

// Key seals records.
type Key [KeySize]byte

// ReadKeys reads a file of keys: one a line, in base64, of 32 bytes each. The first
// one seals, all of them open. Empty lines and lines that begin with # don't count.
// Errors never quote the file. One that every user may write to is refused.
func ReadKeys(path string) ([]Key, error) { return readKeys(path, fileowner.Writable) }

// readKeys reads a file that trusted has no error for.
func readKeys(path string, trusted func(string, fs.FileInfo) error) ([]Key, error) {
	text, err := smallfile.Trusted(path, trusted)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing{path, err}
	}
	if err != nil {
		return nil, err
	}
	keys, err := ParseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return keys, nil
}

// missing is an error about a file of keys that is not there.
type missing struct {
	path string
	err  error
}

func (m missing) Error() string {
	return fmt.Sprintf("there is no file %s; make one with: (umask 077; openssl rand -base64 %d > %s)", m.path, KeySize, m.path)
}

func (m missing) Unwrap() error { return m.err }

// ParseKeys is ReadKeys for text.
func ParseKeys(text []byte) ([]Key, error) {
	var keys []Key
	lines := bufio.NewScanner(bytes.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		raw, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(raw) != KeySize {
			return nil, fmt.Errorf("line %d is no key: %d bytes in base64 are one (make one with: openssl rand -base64 %d)", number, KeySize, KeySize)
		}
		keys = append(keys, Key(raw))
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("there is no key in it (make one with: openssl rand -base64 %d)", KeySize)
	}
	return keys, lines.Err()
}

// EnsureKeys reads a file of keys, and makes one with a new key when there is none,
// which only its owner may read. Keys of another user are refused: whoever made them could
// read, and write, all that is sealed with them.
func EnsureKeys(path string) ([]Key, error) {
	keys, err := readKeys(path, fileowner.Planted)
	if !errors.Is(err, fs.ErrNotExist) {
		return keys, err
	}
	var key Key
	_, _ = rand.Read(key[:]) // never fails
	if err := writeNew(path, base64.StdEncoding.EncodeToString(key[:])+"\n"); err != nil {
		if cause, ok := errors.AsType[*fs.PathError](err); ok {
			err = cause.Err // the file that it names has a name of no meaning
		}
		return nil, fmt.Errorf("%s cannot be made: %w", path, err)
	}
	return readKeys(path, fileowner.Planted) // what stands there: another process may have been first
}

// writeNew writes a file whole or not at all, unless there is one.
func writeNew(path, text string) error {
	temp := path + "." + rand.Text()[:8]
	defer func() { _ = os.Remove(temp) }()
	file, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err = os.Link(temp, path); errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}
