package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/sessions/boltstore"
	"github.com/mcpbridge/bridge/sessions/redisstore"
	"github.com/mcpbridge/bridge/sessions/store"
)

// openStore opens what the settings name, sealed; nil when sessions end with the
// process. A store in a file makes its own key.
func openStore(ctx context.Context, settings config.Store) (store.Store, []store.Key, error) {
	scheme, path, _ := strings.Cut(settings.URL, ":")
	var (
		keys  []store.Key
		inner store.Store
		err   error
	)
	switch {
	case scheme == "memory":
		return nil, nil, nil
	case settings.Keys != "":
		keys, err = store.ReadKeys(settings.Keys)
	default:
		keys, err = store.EnsureKeys(path + ".keys")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("store.keys: %w", err)
	}
	if scheme == "file" {
		inner, err = boltstore.Open(path, boltstore.Options{Relaxed: settings.Durability == "relaxed"})
	} else {
		inner, err = redisstore.Open(ctx, settings.URL)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("store.url: %w", err)
	}
	sealed, err := store.NewSealed(inner, keys)
	if err != nil {
		return nil, nil, errors.Join(err, inner.Close())
	}
	return sealed, keys, nil
}

// checkStore reports why serve could not open its store. It makes nothing, and a file
// that a running bridge has open is fine.
func checkStore(ctx context.Context, settings config.Store) error {
	if path, isFile := strings.CutPrefix(settings.URL, "file:"); isFile {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return checkNewStore(path, settings.Keys)
		}
	}
	s, _, err := openStore(ctx, settings)
	switch {
	case errors.Is(err, boltstore.ErrInUse):
		return nil
	case err != nil || s == nil:
		return err
	}
	return s.Close()
}

// checkNewStore checks a store that serve will make.
func checkNewStore(path, keys string) error {
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return fmt.Errorf("store.url: %s is no directory", filepath.Dir(path))
	}
	if keys == "" {
		return nil
	}
	if _, err := store.ReadKeys(keys); err != nil {
		return fmt.Errorf("store.keys: %w", err)
	}
	return nil
}
