package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/sessions/boltstore"
	"github.com/mcpbridge/bridge/sessions/redisstore"
	"github.com/mcpbridge/bridge/sessions/store"
)

// openStore opens what the settings name, sealed; nil when sessions end with the
// process. A store in a file makes its own key.
func openStore(ctx context.Context, settings config.Store) (store.Store, []store.Key, error) {
	var (
		keys       []store.Key
		inner      store.Store
		err        error
		kind, path = settings.Kind()
	)
	if kind == "memory" {
		return nil, nil, nil
	}
	if kind == "file" {
		err = checkDirectory(filepath.Dir(path)) // which is where the keys go, too
	}
	if err != nil {
		return nil, nil, fmt.Errorf("store.url: %w", err)
	}
	switch {
	case settings.Keys != "":
		keys, err = store.ReadKeys(settings.Keys)
	case kind == "file":
		keys, err = store.EnsureKeys(path + ".keys")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("store.keys: %w", err)
	}
	if err := writableByAll(settings); err != nil {
		return nil, nil, fmt.Errorf("store.url: %w", err)
	}
	switch kind {
	case "file":
		inner, err = boltstore.Open(path, boltstore.Options{Relaxed: settings.Durability == "relaxed", Direct: settings.Journal == "off"})
	case "redis":
		inner, err = redisstore.Open(ctx, settings.URL)
	default: // config refuses it too
		err = errors.New("names no kind of store that there is")
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

// Bounds on a look at a store.
const (
	checkTime    = 15 * time.Second
	checkRecords = 500
)

// checkStore reports why serve could not use its store, and in notes what is worth knowing of
// it. It makes nothing, and a file that a running bridge has open is fine.
func checkStore(ctx context.Context, settings config.Store) (notes []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	if kind, path := settings.Kind(); kind == "file" {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return exposures(settings), checkNewStore(path, settings.Keys)
		}
	}
	s, _, err := openStore(ctx, settings)
	switch {
	case errors.Is(err, boltstore.ErrInUse):
		return []string{"store: a running bridge has it open"}, nil
	case err != nil || s == nil:
		return nil, err
	}
	notes, err = lookInto(ctx, s)
	notes = append(notes, exposures(settings)...)
	return notes, errors.Join(err, s.Close())
}

// Bounds on the look at a store at the start, which holds that up.
const (
	startLookTime    = time.Second
	startLookRecords = 50
)

// warnOf has the log tell of a store that serve can use, but hardly as somebody wants it: who learns that
// from clients that begin anew has lost their sessions.
func warnOf(ctx context.Context, s store.Store, log zerolog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, startLookTime)
	defer cancel()
	const what = "the store of sessions is not as it should be"
	if err := s.Ping(ctx); err != nil {
		log.Warn().Err(err).Msg("the store of sessions cannot be written to: calls without questions go on")
	}
	if err := evicts(ctx, s); err != nil {
		log.Warn().Err(err).Msg(what)
	}
	notes, err := records(ctx, s, startLookRecords)
	if errors.Is(err, store.ErrForeign) {
		log.Warn().Err(err).Msg(what)
	}
	for _, note := range notes {
		log.Info().Msg(note)
	}
}

// lookInto looks at what an opened store has, and how it keeps it.
func lookInto(ctx context.Context, s store.Store) (notes []string, err error) {
	if err := s.Ping(ctx); err != nil {
		return nil, fmt.Errorf("store.url: it cannot be written to: %w", err)
	}
	if err := evicts(ctx, s); err != nil {
		return nil, err
	}
	return records(ctx, s, checkRecords)
}

// Where the settings do not say how much a store may take.
const (
	fileSize  = 4 << 30 // at most
	redisSize = 1 << 30 // where Redis has no bound of its own
	// redisShare is which part of a Redis one process has: replicas do not know what the others have kept there, and of a
	// few of them nobody is to fill it through all.
	redisShare = 8
	// fewBytes is what a store should have at least: with less the disk is full, or as good as that.
	fewBytes = 16 << 20
)

// roomOf is how much clients may have this process keep in a store.
func roomOf(ctx context.Context, settings config.Store, s store.Store, log zerolog.Logger) *budget.Room {
	size := storeSize(ctx, settings, s)
	room := budget.NewRoom(size)
	if file, ok := engineOf(s).(*boltstore.Store); ok && settings.Size == 0 {
		room.Grow(func() int64 { return fileShare(file) })
		if size < fewBytes {
			log.Warn().Int64("bytes", size).Msg("the disk of the store is full, or nearly: until there is room, few sessions and questions are kept (store.size)")
		}
	}
	return room
}

// fileShare is a third of what the disk has for a file, which may take twice what it has; 0: nobody knows.
func fileShare(file *boltstore.Store) int64 { return min(fileSize, file.Disk()/3) }

// storeSize is how much clients may have this process keep in a store.
func storeSize(ctx context.Context, settings config.Store, s store.Store) int64 {
	if settings.Size > 0 {
		return int64(settings.Size)
	}
	switch engine := engineOf(s).(type) {
	case *boltstore.Store:
		return cmp.Or(fileShare(engine), fileSize)
	case *redisstore.Store:
		ctx, cancel := context.WithTimeout(ctx, startLookTime)
		defer cancel()
		return cmp.Or(engine.MaxMemory(ctx)/redisShare, redisSize)
	}
	return fileSize
}

// engineOf returns what is behind the seal of a store.
func engineOf(s store.Store) store.Store {
	if sealed, ok := s.(*store.Sealed); ok {
		return sealed.Store
	}
	return s
}

// evicts reports that a store removes what it is to keep.
func evicts(ctx context.Context, s store.Store) error {
	redis, ok := engineOf(s).(*redisstore.Store)
	if !ok {
		return nil
	}
	if policy := redis.Evicts(ctx); policy != "" {
		return fmt.Errorf("store.url: the server evicts keys when it is full (maxmemory-policy %s), which ends sessions; set it to noeviction", policy)
	}
	return nil
}

// records looks at about so many records of a store.
func records(ctx context.Context, s store.Store, most int) (notes []string, err error) {
	found, err := store.Verify(ctx, s, most)
	switch {
	case errors.Is(err, store.ErrForeign):
		return nil, fmt.Errorf("store.keys: %w", err)
	case err != nil:
		return nil, fmt.Errorf("store.url: %w", err)
	}
	if found.Foreign > 0 {
		notes = append(notes, fmt.Sprintf("store: the keys do not open %d of the %d records that were looked at; their sessions are left alone until they expire", found.Foreign, found.Records))
	}
	if found.Older > 0 {
		notes = append(notes, fmt.Sprintf("store: %d of the %d records that were looked at need another of store.keys than the first", found.Older, found.Records))
	}
	if found.Newer > 0 {
		notes = append(notes, fmt.Sprintf("store: a newer version of the bridge wrote %d of the %d records that were looked at; they are left alone", found.Newer, found.Records))
	}
	return notes, nil
}

// checkNewStore checks a store that serve will make.
func checkNewStore(path, keys string) error {
	if _, err := os.Stat(path + ".keys"); err == nil && keys == "" {
		if _, err := store.EnsureKeys(path + ".keys"); err != nil { // which are there
			return fmt.Errorf("store.keys: %w", err)
		}
	}
	if err := checkTarget(filepath.Dir(path)); err != nil {
		return fmt.Errorf("store.url: %w", err)
	}
	if err := boltstore.CheckMissing(path); err != nil {
		return fmt.Errorf("store.url: %w", err)
	}
	if keys == "" {
		return nil
	}
	if _, err := store.ReadKeys(keys); err != nil {
		return fmt.Errorf("store.keys: %w", err)
	}
	return nil
}
