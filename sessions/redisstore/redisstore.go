// Package redisstore keeps a bridge's sessions in Redis or Valkey, where any number of
// replicas share them: one server, one behind Sentinels, or a cluster.
//
// All keys of a session are in one slot. Its own record is rarely written, and replicas
// cache it: the server tells them when it changes. A change is one command or one script, so
// that of all replicas exactly one replaces a version. All times are the server's.
package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/internal/turns"
	"github.com/mcpbridge/bridge/sessions/store"
	"github.com/redis/rueidis"
)

// Store is a store.Store in Redis.
type Store struct {
	client    rueidis.Client
	apart     rueidis.Client // see lanes.go
	prefix    string
	closed    atomic.Bool
	indexes   *indexes
	together  together
	crowd     crowd
	large     *turns.Queue // for operations with large values
	loads     *turns.Queue // for sessions that are read whole
	underway  underway
	stays     atomic.Bool                          // the user may not rename what was sent ahead
	perScript atomic.Int32                         // records that one script may replace
	changed   atomic.Pointer[func(session string)] // see Watch
}

// Open connects to what a URL names, and tries whether it can be written to. See
// parse for its forms. Errors don't quote its password.
func Open(ctx context.Context, url string) (*Store, error) {
	option, prefix, err := parse(url)
	if err != nil {
		return nil, err
	}
	s := &Store{
		prefix: prefix, indexes: newIndexes(), crowd: newCrowd(), large: turns.New(largeAtOnce), loads: turns.New(loadsAtOnce),
		underway: underway{of: map[string]*largeChanges{}},
	}
	s.together.send = s.sendGroup
	s.perScript.Store(mostTogether)
	if inSlots(&option) {
		s.perScript.Store(1)
	}
	option.OnInvalidations = s.invalidated
	if s.client, err = rueidis.NewClient(option); err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", strings.Join(option.InitAddress, ", "), refusal(err, option.TLSConfig != nil))
	}
	if s.apart, err = openApart(option); err != nil {
		s.client.Close()
		return nil, fmt.Errorf("connecting to %s: %w", strings.Join(option.InitAddress, ", "), refusal(err, option.TLSConfig != nil))
	}
	if err := s.Ping(ctx); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("writing to %s: %w", strings.Join(option.InitAddress, ", "), err)
	}
	for _, script := range []*rueidis.Lua{rueidis.NewLuaScript(replaceText), commitScript.Lua, loadScript.Lua, touchScript.Lua} {
		_ = script.ExecMulti(ctx, s.client) // has it loaded; a server that does not know one later is told with its first use
	}
	return s, nil
}

// base is what the keys of a session begin with. The braces put them into one slot of a
// cluster.
func (s *Store) base(session string) string { return s.prefix + "{" + session + "}:" }

// keyOf is the key of a record: its session, its kind, then its id.
func (s *Store) keyOf(at store.Address) string {
	return s.prefix + "{" + at.Session + "}:" + string(rune(at.Kind)) + at.ID
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, session string, changes ...store.Change) error {
	if err := cmp.Or(store.Check(session, changes), s.usable(ctx)); err != nil {
		return err
	}
	if session == store.Replicas {
		return s.commitAll(ctx, session, changes, s.promptly)
	}
	bytes := store.SizeOf(changes)
	if bytes >= store.Large {
		return s.commitInTurn(ctx, session, bytes, changes, s.inTurn, func(ctx context.Context) error {
			return s.commitAll(ctx, session, changes, s.ahead)
		})
	}
	bytes += eachCosts * len(changes)
	if !s.crowd.enter(bytes) {
		return s.commitInTurn(ctx, session, bytes, changes, s.crowd.inTurn, func(ctx context.Context) error {
			return s.commitSmall(ctx, session, changes)
		})
	}
	defer s.crowd.leave(bytes)
	return s.commitSmall(ctx, session, changes)
}

// commitSmall makes changes without large values.
func (s *Store) commitSmall(ctx context.Context, session string, changes []store.Change) error {
	if len(changes) == 1 && isPlain(&changes[0]) {
		if c := &changes[0]; c.Kind == store.Session || s.indexes.outlive(session, c) {
			return s.commitOne(ctx, session, c)
		}
	}
	return s.commitAll(ctx, session, changes, s.among)
}

// Load implements store.Store. What it reads may be a hundred megabytes of one client's, so that it takes its turn on
// connections of its own.
func (s *Store) Load(ctx context.Context, session string) ([]store.Record, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	keys := []string{s.base(session) + indexName}
	if session == store.Replicas {
		parts, err := s.promptly(ctx, loadScript, keys, nil).AsStrSlice()
		return records(session, parts), plain(err)
	}
	who := turns.Who{Session: session}
	if _, err := s.loads.Enter(ctx, who); err != nil {
		return nil, store.Slow(err)
	}
	defer s.loads.Leave(who)
	parts, err := s.alone(ctx, loadScript, keys, nil).AsStrSlice()
	if err != nil {
		return nil, store.Slow(plain(err))
	}
	return records(session, parts), nil
}

// mostVersion bounds versions: scripts count exactly up to there, and no record gets that
// far. What has a higher one was written by somebody else.
const mostVersion = 999_999_999_999_999

// versionOf reads a record's version; false: it is no record.
func versionOf(number string) (uint64, bool) {
	version, err := strconv.ParseUint(number, 10, 64)
	return version, err == nil && version <= mostVersion
}

// records reads what loadScript returns, without what is no record.
func records(session string, parts []string) []store.Record {
	var list []store.Record
	for ; len(parts) >= 4; parts = parts[4:] {
		ttl, _ := strconv.ParseInt(parts[1], 10, 64) // the script made them
		version, ok := versionOf(parts[2])
		if !ok || parts[0] == "" {
			continue
		}
		list = append(list, store.Record{
			Address: store.Address{Session: session, Kind: store.Kind(parts[0][0]), ID: parts[0][1:]},
			Version: version, TTL: time.Duration(ttl) * time.Millisecond, Value: []byte(parts[3]),
		})
	}
	slices.SortFunc(list, func(a, b store.Record) int { return a.Compare(b.Address) })
	return list
}

// Touch implements store.Store.
func (s *Store) Touch(ctx context.Context, touches ...store.Touch) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	err := s.touchAll(ctx, touches, func(key, ttl string) rueidis.Completed {
		return s.client.B().Evalsha().Sha1(touchScript.sha).Numkeys(1).Key(key).Arg(ttl).Build()
	})
	if said, ok := rueidis.IsRedisErr(err); ok && said.IsNoScript() {
		err = s.touchAll(ctx, touches, func(key, ttl string) rueidis.Completed {
			return s.client.B().Eval().Script(touchScript.text).Numkeys(1).Key(key).Arg(ttl).Build()
		})
	}
	return plain(err)
}

// touchAll touches in one round trip, with a command for those that live as long as their calls.
func (s *Store) touchAll(ctx context.Context, touches []store.Touch, withCalls func(key, ttl string) rueidis.Completed) error {
	commands := make(rueidis.Commands, len(touches))
	for i, touch := range touches {
		key, ttl := s.keyOf(store.Address{Session: touch.Session, Kind: store.Session}), touch.TTL.Milliseconds()
		if touch.WithCalls {
			commands[i] = withCalls(key, strconv.FormatInt(ttl, 10))
		} else {
			commands[i] = s.client.B().Pexpire().Key(key).Milliseconds(ttl).Build()
		}
	}
	for _, reply := range s.client.DoMulti(ctx, commands...) {
		if err := reply.Error(); err != nil {
			return err
		}
	}
	return nil
}

// End implements store.Store.
func (s *Store) End(ctx context.Context, session string) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	s.indexes.forget(session)
	s.underway.end(session)
	keys := []string{s.base(session) + indexName}
	err := endScript.Exec(ctx, s.client, keys, nil).Error()
	s.client.Do(ctx, s.heard(keys[0]))
	return plain(err)
}

// Watch implements store.Store.
func (s *Store) Watch(changed func(session string)) bool {
	s.changed.Store(&changed)
	return true
}

// invalidated is told by the server which copies are out of date; no keys stand for all.
func (s *Store) invalidated(keys []rueidis.RedisMessage) {
	if keys == nil { // the connection was lost: the server may have forgotten what it had
		s.indexes.forget("")
	}
	changed := s.changed.Load()
	if changed == nil {
		return
	}
	if keys == nil {
		(*changed)("")
	}
	for i := range keys {
		key, _ := keys[i].ToString()
		session, found := strings.CutPrefix(strings.TrimSuffix(key, "}:s"), s.prefix+"{")
		if found && session != "" {
			s.indexes.forget(session) // it may have ended
			(*changed)(session)
		}
	}
}

// Ping implements store.Store. It writes, which a server that is read-only or full
// refuses.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	return plain(s.apart.Do(ctx, s.apart.B().Set().Key(s.prefix+"ping").Value("").Px(time.Second).Build()).Error())
}

// Close implements store.Store.
func (s *Store) Close() error {
	s.closed.Store(true)
	s.client.Close()
	s.apart.Close()
	return nil
}

func (s *Store) usable(ctx context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	return ctx.Err()
}

// plain says in the store's words what the client means.
func plain(err error) error {
	if errors.Is(err, rueidis.ErrClosing) {
		return store.ErrClosed
	}
	return err
}
