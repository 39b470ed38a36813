package main

import (
	"os"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/fileowner"
)

// storeFiles returns the files in which a store keeps sessions.
func storeFiles(settings config.Store) []string {
	kind, path := settings.Kind()
	if kind != "file" {
		return nil
	}
	return []string{path, path + ".journal"}
}

// writableByAll returns an error for files of a store that every user may write to: what is
// in them is sealed, but could be taken back to what it was, or away.
func writableByAll(settings config.Store) error {
	for _, file := range storeFiles(settings) {
		info, err := os.Stat(file)
		if err != nil {
			continue // whoever opens it says so
		}
		if err := fileowner.Writable(file, info); err != nil {
			return err
		}
	}
	return nil
}

// exposures says which files of a store others may use than they should.
func exposures(settings config.Store) (notes []string) {
	_, path := settings.Kind()
	for _, file := range append(storeFiles(settings), keysOf(settings, path)) {
		info, err := os.Stat(file)
		if err != nil {
			continue // as above
		}
		if text := fileowner.Exposed(file, info); text != "" {
			notes = append(notes, "store: "+text)
		}
	}
	return notes
}
