package redisstore

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/internal/turns"
	"github.com/mcpbridge/bridge/sessions/store"
	"github.com/redis/rueidis"
)

// A connection carries one thing after the other, so what is small has one on which nothing is large:
//
//	client                   nearly everything that is small, where that is much in turn (see crowd)
//	apart                    leases and pings, by which is judged who lives
//	apart, of its own each   what is large, in turn; sessions that are read whole
//
// The server, and the link to it, serve connections side by side.

const (
	// largeAtOnce is how many operations with large values are under way. Of one owner they are half of those at most.
	largeAtOnce = 4
	// turnPatience is how long one waits for its turn, with what is small, too: the greediest wait longest.
	turnPatience = 20 * time.Second
	// Once it has its turn it may take largeTimeout, and as long as its bytes take at leastRate.
	largeTimeout = 5 * time.Second
	leastRate    = 1 << 20 // bytes per second

	loadsAtOnce = 2 // sessions that are read whole at the same time

	apartBuffer = 64 << 10 // bytes, of each direction of a connection
	apartRing   = 6        // power of two: what waits on a connection for its reply
)

// openApart opens the connections besides the first one.
func openApart(option rueidis.ClientOption) (rueidis.Client, error) {
	option.OnInvalidations, option.DisableCache = nil, true // copies are the first one's
	option.AlwaysPipelining = true                          // else who waits for a reply does not hear that its context ends
	option.BlockingPoolSize = largeAtOnce + loadsAtOnce
	option.ReadBufferEachConn, option.WriteBufferEachConn, option.RingScaleEachConn = apartBuffer, apartBuffer, apartRing
	return rueidis.NewClient(option)
}

// among runs a script among all that is small.
func (s *Store) among(ctx context.Context, it *script, keys, args []string) rueidis.RedisResult {
	return it.Exec(ctx, s.client, keys, args)
}

// promptly runs a script behind nothing that is any client's.
func (s *Store) promptly(ctx context.Context, it *script, keys, args []string) rueidis.RedisResult {
	return it.Exec(ctx, s.apart, keys, args)
}

// alone runs a script on a connection that nothing else has meanwhile: to the client library it is a command that blocks.
func (s *Store) alone(ctx context.Context, it *script, keys, args []string) rueidis.RedisResult {
	run := func(by, what string) rueidis.RedisResult {
		return s.apart.Do(ctx, s.apart.B().Arbitrary(by, what, strconv.Itoa(len(keys))).Keys(keys...).Args(args...).Blocking())
	}
	reply := run("EVALSHA", it.sha)
	if said, ok := rueidis.IsRedisErr(reply.Error()); ok && said.IsNoScript() {
		return run("EVAL", it.text)
	}
	return reply
}

const (
	aheadName  = "t" // begins what is between a session's key and the number of a value that was sent ahead
	aheadLasts = time.Minute
)

// ahead runs commitScript alone, and sends large values ahead, each as a key that the script renames: what a script is given it copies
// several times, for 0.1 s where that is 16 MB, in which the server does nothing else. Users of earlier versions may not rename.
func (s *Store) ahead(ctx context.Context, it *script, keys, args []string) rueidis.RedisResult {
	if s.stays.Load() {
		return s.alone(ctx, it, keys, args)
	}
	var commands rueidis.Commands
	left := slices.Clone(args)
	for i := 1; i < len(args); i += 4 {
		replaces, err := strconv.ParseUint(args[i], 10, 64)
		if err != nil || len(args[i+2]) < store.Large { // the server alone knows the next version, or it is small
			continue
		}
		key := strings.TrimSuffix(keys[0], indexName) + aheadName + strconv.FormatUint(rand.Uint64(), 36)
		record := strconv.FormatUint(replaces+1, 10) + " " + args[i+2]
		left[i+2], left[i+3] = "", key
		commands = append(commands, s.apart.B().Arbitrary("SET").Keys(key).Args(record, "PX", strconv.FormatInt(aheadLasts.Milliseconds(), 10)).Blocking())
	}
	for _, reply := range s.apart.DoMulti(ctx, commands...) {
		if reply.Error() != nil {
			return reply
		}
	}
	reply := s.alone(ctx, it, keys, left)
	if said, err := reply.AsIntSlice(); err == nil && len(said) == 2 && said[1] < 0 {
		s.stays.Store(true)
		return s.alone(ctx, it, keys, args)
	}
	return reply
}

// inTurn makes an operation of a session with so many bytes, once it is its turn.
func (s *Store) inTurn(ctx context.Context, session string, bytes int, operation func(context.Context) error) error {
	owner, bounds := store.TurnOf(ctx)
	who := turns.Who{Principal: owner, Session: session}
	waiting, cancel := context.WithTimeout(bounds, turnPatience)
	_, err := s.large.Enter(waiting, who)
	cancel()
	if err != nil {
		return store.Slow(err)
	}
	defer s.large.Leave(who)
	bounded, cancel := context.WithTimeout(bounds, timeFor(bytes))
	defer cancel()
	return store.Slow(operation(bounded))
}

// timeFor is how long so many bytes may take.
func timeFor(bytes int) time.Duration {
	return largeTimeout + time.Duration(bytes)*time.Second/leastRate
}

// waiter has an operation of a session with so many bytes wait for its turn.
type waiter func(ctx context.Context, session string, bytes int, operation func(context.Context) error) error

// commitInTurn makes changes once it is their turn. What is large takes a script, which sees to the session's index: that may be
// gone by the time that the values are there.
func (s *Store) commitInTurn(ctx context.Context, session string, bytes int, changes []store.Change, wait waiter, commit func(context.Context) error) error {
	c := s.underway.begin(session)
	defer s.underway.over(session, c)
	err := wait(ctx, session, bytes, func(ctx context.Context) error {
		if s.underway.hasEnded(c) {
			return nil
		}
		return commit(ctx)
	})
	if !s.underway.hasEnded(c) {
		return err
	}
	// Nobody is to find what came behind the end of its session, nor is the server to keep it.
	_, bounds := store.TurnOf(ctx)
	again, cancel := context.WithTimeout(bounds, largeTimeout)
	defer cancel()
	if err := s.End(again, session); err != nil {
		return err
	}
	return &store.ConflictError{Address: store.Address{Session: session, Kind: changes[0].Kind, ID: changes[0].ID}}
}

// underway knows which sessions have large changes under way, whose end may overtake those.
type underway struct {
	mu sync.Mutex
	of map[string]*largeChanges
}

// largeChanges are those of a session, guarded by underway's lock.
type largeChanges struct {
	n     int
	ended bool
}

func (u *underway) begin(session string) *largeChanges {
	u.mu.Lock()
	defer u.mu.Unlock()
	c := u.of[session]
	if c == nil {
		c = new(largeChanges)
		u.of[session] = c
	}
	c.n++
	return c
}

func (u *underway) over(session string, c *largeChanges) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if c.n--; c.n == 0 && u.of[session] == c {
		delete(u.of, session)
	}
}

// end notes that a session is about to end. What begins later is of another one.
func (u *underway) end(session string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if c := u.of[session]; c != nil {
		c.ended = true
		delete(u.of, session)
	}
}

func (u *underway) hasEnded(c *largeChanges) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return c.ended
}

// getLarge reads a record that is large, of so many bytes.
func (s *Store) getLarge(ctx context.Context, at store.Address, size int) (r store.Record, err error) {
	key := s.keyOf(at)
	err = s.inTurn(ctx, at.Session, size, func(ctx context.Context) error {
		replies := s.apart.DoMulti(ctx, s.apart.B().Pttl().Key(key).Build(), s.apart.B().Arbitrary("GET").Keys(key).Blocking())
		ttl, err := replies[0].AsInt64()
		if err != nil {
			return plain(err)
		}
		r, err = record(at, &replies[1], time.Duration(ttl)*time.Millisecond)
		return err
	})
	return r, err
}
