package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// checkDirectory looks whether there is a directory for a file.
func checkDirectory(path string) error {
	dir := filepath.Dir(path)
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the directory %s does not exist; create it, writable for the bridge's user", dir)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no directory", dir)
	}
	return nil
}

// checkWritable looks whether files can be made in a directory.
func checkWritable(dir string) error {
	probe, err := os.CreateTemp(dir, ".mcp-bridge-*")
	if err != nil {
		if cause, ok := errors.AsType[*fs.PathError](err); ok {
			err = cause.Err // the file that it names has a name of no meaning
		}
		return fmt.Errorf("no file can be made in %s: %w", dir, err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}
