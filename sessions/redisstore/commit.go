package redisstore

import (
	"context"
	"strconv"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
	"github.com/redis/rueidis"
)

// isPlain reports a change that needs no more of the server than to look at one record and
// to write it.
func isPlain(c *store.Change) bool { return !c.Delete && c.Replaces != store.Any }

// commitOne writes one record, whose session's index lives long enough. One that is new is
// on the way of every question: it takes no script.
func (s *Store) commitOne(ctx context.Context, session string, c *store.Change) error {
	at := store.Address{Session: session, Kind: c.Kind, ID: c.ID}
	key := s.keyOf(at)
	value := strconv.FormatUint(c.Replaces+1, 10) + " " + rueidis.BinaryString(c.Value)
	if c.Replaces == 0 && c.Kind != store.Session {
		return s.create(ctx, at, key, value, c.TTL.Milliseconds())
	}
	head := ""
	if c.Replaces > 0 {
		head = strconv.FormatUint(c.Replaces, 10) + " "
	}
	failed, err := replaceScript.Exec(ctx, s.client, []string{key}, []string{head, value, strconv.FormatInt(c.TTL.Milliseconds(), 10)}).AsInt64()
	if err == nil && failed > 0 {
		return &store.ConflictError{Address: at}
	}
	return plain(err)
}

// create writes a record that must not be there, after its name into the index.
func (s *Store) create(ctx context.Context, at store.Address, key, value string, ttl int64) error {
	base := s.base(at.Session)
	replies := s.client.DoMulti(ctx,
		s.client.B().Sadd().Key(base+indexName).Member(key[len(base):]).Build(),
		s.client.B().Set().Key(key).Value(value).Nx().PxMilliseconds(ttl).Build())
	if err := replies[0].Error(); err != nil {
		return plain(err)
	}
	err := replies[1].Error()
	if rueidis.IsRedisNil(err) {
		return &store.ConflictError{Address: at}
	}
	return plain(err)
}

// commitAll makes any changes.
func (s *Store) commitAll(ctx context.Context, session string, changes []store.Change) error {
	base := s.base(session)
	keys, args := make([]string, 1, 1+len(changes)), make([]string, 1, 1+3*len(changes))
	keys[0], args[0] = base+indexName, strconv.Itoa(s.indexes.look(session))
	for i := range changes {
		c := &changes[i]
		replaces, ttl := strconv.FormatUint(c.Replaces, 10), strconv.FormatInt(c.TTL.Milliseconds(), 10)
		if c.Replaces == store.Any {
			replaces = "-1"
		}
		if c.Delete {
			ttl = "0"
		}
		keys = append(keys, s.keyOf(store.Address{Session: session, Kind: c.Kind, ID: c.ID}))
		args = append(args, replaces, ttl, rueidis.BinaryString(c.Value))
	}
	began := time.Now()
	failed, err := commitScript.Exec(ctx, s.client, keys, args).AsInt64()
	if err != nil {
		return plain(err)
	}
	if failed > 0 {
		c := &changes[failed-1]
		return &store.ConflictError{Address: store.Address{Session: session, Kind: c.Kind, ID: c.ID}}
	}
	s.indexes.made(session, began, -failed)
	return nil
}
