package redisstore

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
	"github.com/redis/rueidis"
)

// isPlain reports a change that needs no more of the server than to look at one record and
// to write it. A session that is new has no calls.
func isPlain(c *store.Change) bool {
	return !c.Delete && c.Replaces != store.Any && (!c.WithCalls || c.Replaces == 0)
}

// values are what records are on their way in.
var values = sync.Pool{New: func() any { return new([]byte) }}

// commitOne writes one record, whose session's index lives long enough. One that is new is
// on the way of every question: it takes no script.
func (s *Store) commitOne(ctx context.Context, session string, c *store.Change) error {
	at := store.Address{Session: session, Kind: c.Kind, ID: c.ID}
	buf := values.Get().(*[]byte)
	*buf = append(append(strconv.AppendUint((*buf)[:0], c.Replaces+1, 10), ' '), c.Value...)
	one := single{at: at, key: s.keyOf(at), value: rueidis.BinaryString(*buf), ttl: c.TTL.Milliseconds()}
	switch {
	case c.Replaces > 0:
		one.head = strconv.FormatUint(c.Replaces, 10) + " "
	case c.Kind != store.Session:
		base := len(one.key) - len(c.ID) - 1
		one.index, one.member = one.key[:base]+indexName, one.key[base:]
	}
	err := s.together.do(ctx, &one)
	if err == nil && cap(*buf) <= mostBytes { // else the client may still be about to send it
		values.Put(buf)
	}
	return err
}

// runner runs a script over some connection.
type runner func(ctx context.Context, it *script, keys, args []string) rueidis.RedisResult

// commitAll makes any changes.
func (s *Store) commitAll(ctx context.Context, session string, changes []store.Change, run runner) error {
	base := s.base(session)
	keys, args := make([]string, 1, 1+len(changes)), make([]string, 1, 1+4*len(changes))
	look := s.indexes.look(session)
	keys[0], args[0] = base+indexName, strconv.Itoa(look)
	for i := range changes {
		c := &changes[i]
		replaces, ttl := strconv.FormatUint(c.Replaces, 10), strconv.FormatInt(c.TTL.Milliseconds(), 10)
		if c.Replaces == store.Any {
			replaces = "-1"
		}
		switch {
		case c.Delete:
			ttl = "0"
		case c.WithCalls:
			ttl = "-" + ttl
		}
		keys = append(keys, s.keyOf(store.Address{Session: session, Kind: c.Kind, ID: c.ID}))
		args = append(args, replaces, ttl, rueidis.BinaryString(c.Value), "")
	}
	began := time.Now()
	said, err := run(ctx, commitScript, keys, args).AsIntSlice()
	if slices.ContainsFunc(changes, func(c store.Change) bool { return c.Kind == store.Session }) {
		s.client.Do(ctx, s.heard(keys[0]))
	}
	if err != nil {
		return plain(err)
	}
	if len(said) != 2 || said[0] > int64(len(changes)) {
		return garbled("a number of no change")
	}
	failed, gone := said[0], int(said[1])
	if failed > 0 {
		c := &changes[failed-1]
		return &store.ConflictError{Address: store.Address{Session: session, Kind: c.Kind, ID: c.ID}}
	}
	s.indexes.made(session, began, -failed, look, gone)
	return nil
}
