package redisstore

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/sessions/store"
	"github.com/redis/rueidis"
)

// Get implements store.Store. A session's own record comes from this replica's copy
// for as long as the server has not told of a change.
func (s *Store) Get(ctx context.Context, at store.Address) (store.Record, error) {
	if err := s.usable(ctx); err != nil {
		return store.Record{}, err
	}
	if at.Kind == store.Session {
		return s.cached(ctx, at)
	}
	return s.Fresh(ctx, at)
}

// Fresh implements store.Freshener. Its first reply has all of nearly every record; one of which it has not is read at what it costs.
func (s *Store) Fresh(ctx context.Context, at store.Address) (store.Record, error) {
	if err := s.usable(ctx); err != nil {
		return store.Record{}, err
	}
	if r, all, err := s.beginning(ctx, at, readCosts); all || err != nil {
		return r, err
	}
	return s.long(ctx, at)
}

// long reads a record that goes on behind what was asked for first.
func (s *Store) long(ctx context.Context, at store.Address) (store.Record, error) {
	size, err := s.length(ctx, at)
	switch {
	case isForbidden(err):
		size = mostBulk
	case err != nil:
		return store.Record{}, err
	}
	if size <= store.Large {
		if r, all, err := s.beginning(ctx, at, size); all || err != nil {
			return r, err
		}
	}
	return s.getLarge(ctx, at, size)
}

// beginning reads a record, unless it is longer than so many bytes: then not all is there.
func (s *Store) beginning(ctx context.Context, at store.Address, most int) (r store.Record, all bool, err error) {
	key := s.keyOf(at)
	replies, err := read(ctx, s, at.Session, most, func(ctx context.Context) ([]rueidis.RedisResult, error) {
		replies := s.client.DoMulti(ctx, s.client.B().Pttl().Key(key).Build(), s.client.B().Getrange().Key(key).Start(0).End(int64(most)).Build())
		return replies, plain(replies[0].Error())
	})
	if err != nil || longer(&replies[1], most) {
		return store.Record{}, false, err
	}
	ttl, err := replies[0].AsInt64()
	if err != nil {
		return store.Record{}, false, plain(err)
	}
	r, err = record(at, &replies[1], time.Duration(ttl)*time.Millisecond)
	return r, true, err
}

// longer reports that what was to be read up to so many bytes goes on.
func longer(reply *rueidis.RedisResult, most int) bool {
	begins, err := reply.AsBytes()
	return err == nil && len(begins) > most
}

// length returns how long a record is. Users of earlier versions of the bridge may not ask (isForbidden).
func (s *Store) length(ctx context.Context, at store.Address) (int, error) {
	bytes, err := s.client.Do(ctx, s.client.B().Strlen().Key(s.keyOf(at)).Build()).AsInt64()
	if isOtherType(err) || err == nil && bytes == 0 {
		return 0, store.ErrNotFound
	}
	return int(bytes), plain(err)
}

// Size implements store.Sizer. A user who may not ask has the record read for it.
func (s *Store) Size(ctx context.Context, at store.Address) (int, error) {
	if err := s.usable(ctx); err != nil {
		return 0, err
	}
	size, err := s.length(ctx, at)
	if isForbidden(err) {
		r, err := s.Get(ctx, at)
		return len(r.Value), err
	}
	return size, err
}

// mostCached bounds how long a copy is used without a word from the server.
const mostCached = 10 * time.Minute

func (s *Store) cached(ctx context.Context, at store.Address) (store.Record, error) {
	for _, most := range []int{readCosts, store.Large} {
		reply, err := read(ctx, s, at.Session, most, func(ctx context.Context) (rueidis.RedisResult, error) {
			reply := s.client.DoCache(ctx, s.client.B().Getrange().Key(s.keyOf(at)).Start(0).End(int64(most)).Cache(), mostCached)
			return reply, plain(reply.NonRedisError())
		})
		if err != nil {
			return store.Record{}, err
		}
		if longer(&reply, most) {
			continue
		}
		r, err := record(at, &reply, time.Duration(reply.CachePTTL())*time.Millisecond)
		r.Value = bytes.Clone(r.Value) // the copy serves the next ones, too
		return r, err
	}
	return s.long(ctx, at)
}

// record reads what the server has under a key. What is no record, and was written by
// somebody else, is not there.
func record(at store.Address, reply *rueidis.RedisResult, ttl time.Duration) (store.Record, error) {
	raw, err := reply.AsBytes() // in the client library's memory
	if rueidis.IsRedisNil(err) || isOtherType(err) {
		return store.Record{}, store.ErrNotFound
	}
	if err != nil {
		return store.Record{}, plain(err)
	}
	number, value, found := bytes.Cut(raw, []byte{' '})
	version, ok := versionOf(string(number))
	if !ok || !found {
		return store.Record{}, store.ErrNotFound
	}
	return store.Record{Address: at, Version: version, TTL: ttl, Value: value}, nil
}

// isOtherType reports that a key has a list, a hash or the like.
func isOtherType(err error) bool {
	said, ok := rueidis.IsRedisErr(err)
	return ok && strings.HasPrefix(said.Error(), "WRONGTYPE")
}

// isForbidden reports that the server does not let this user do that.
func isForbidden(err error) bool {
	said, ok := rueidis.IsRedisErr(err)
	return ok && strings.HasPrefix(said.Error(), "NOPERM")
}
