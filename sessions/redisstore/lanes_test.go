package redisstore

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/internal/redistest"
	"github.com/mcpbridge/bridge/internal/turns"
	"github.com/mcpbridge/bridge/sessions/store"
)

// slowServer is a server that takes everything, says that nothing is there, and stops reading where a large value begins, and behind
// what is of the session "held". It needs no Redis.
type slowServer struct {
	net.Listener
	stalled chan string // the key of what is not read any more
	goOn    chan struct{}
	work    sync.WaitGroup
	mu      sync.Mutex
	scripts []string
	keys    []string // the first one of each script

	record atomic.Value    // a string, which is there under each key; unset: nothing is
	asked  func(bytes int) // is told of what is asked for of it
}

func newSlowServer(t *testing.T) *slowServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &slowServer{Listener: l, stalled: make(chan string, 100), goOn: make(chan struct{})}
	f.work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f.work.Go(func() {
				defer conn.Close()
				var words, before []string
				for r := bufio.NewReader(conn); ; {
					before = words
					var err error
					words, err = f.command(r)
					if err != nil {
						return
					}
					if len(words) > 3 && words[0] == "EVALSHA" && strings.Contains(words[3], "{held}") {
						f.stalled <- words[3]
						<-f.goOn
					}
					if _, err = io.WriteString(conn, f.reply(words, before)); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); f.work.Wait() }) // behind the store's
	return f
}

// command reads one, but for the value of a large word before it is to go on.
func (f *slowServer) command(r *bufio.Reader) (words []string, err error) {
	number := func(kind string) (n int) {
		line, err := r.ReadString('\n')
		if err == nil {
			n, err = strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, kind)))
		}
		if err != nil {
			n = -1
		}
		return n
	}
	n := number("*")
	for i := 0; i < n; i++ {
		size := number("$")
		if size < 0 {
			return nil, io.ErrUnexpectedEOF
		}
		if size >= store.Large && words[0] == "SET" {
			f.stalled <- words[1] // of a SET
			<-f.goOn
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(r, word); err != nil {
			return nil, err
		}
		words = append(words, string(word[:size]))
	}
	if n < 1 {
		return nil, io.EOF
	}
	return words, nil
}

// reply returns one, to what may end a transaction of what was before.
func (f *slowServer) reply(words, before []string) string {
	switch words[0] {
	case "HELLO":
		return "%2\r\n+version\r\n+7.0.0\r\n+proto\r\n:3\r\n"
	case "PTTL":
		return ":-2\r\n"
	case "EXEC":
		return "*2\r\n:-2\r\n" + f.recorded(before)
	case "GETRANGE", "GET", "STRLEN":
		return f.recorded(words)
	case "EVALSHA":
		f.mu.Lock()
		f.scripts, f.keys = append(f.scripts, words[1]), append(f.keys, words[3])
		f.mu.Unlock()
		switch words[1] {
		case commitScript.sha:
			return "*2\r\n:0\r\n:0\r\n"
		case loadScript.sha:
			return "*0\r\n"
		}
		return ":0\r\n"
	}
	return "+OK\r\n"
}

// recorded replies to what reads the record.
func (f *slowServer) recorded(words []string) string {
	record, _ := f.record.Load().(string)
	if len(words) == 0 {
		words = []string{""}
	}
	switch words[0] {
	case "STRLEN":
		return ":" + strconv.Itoa(len(record)) + "\r\n"
	case "GETRANGE":
		last, _ := strconv.Atoi(words[3])
		if f.asked != nil {
			f.asked(last + 1)
		}
		record = record[:min(len(record), last+1)]
	}
	return "$" + strconv.Itoa(len(record)) + "\r\n" + record + "\r\n"
}

func large(id string) store.Change {
	return store.Change{Kind: store.Flow, ID: id, TTL: time.Hour, Value: bytes.Repeat([]byte("x"), 4<<20)}
}

// In front of a link, or a server, that is slow, everybody else's small things and the leases passed behind one client's large records.
func TestNothingSmallWaitsForWhatIsLarge(t *testing.T) {
	f := newSlowServer(t)
	s := open(t, "redis://"+f.Addr().String())
	var writing sync.WaitGroup
	write := func(owner, session string) {
		writing.Go(func() {
			ctx := store.WithTurn(t.Context(), store.Turn{Owner: owner})
			if err := s.Commit(ctx, session, large("1")); err != nil {
				t.Errorf("%s: %v", session, err)
			}
		})
	}
	for i := range 4 * largeAtOnce {
		write("greedy", fmt.Sprint("greedy", i))
	}
	for range largeAtOnce / 2 {
		<-f.stalled
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	small := store.Change{Kind: store.Flow, ID: "1", TTL: time.Hour, Value: []byte("x")}
	_, noRecord := s.Get(ctx, store.Address{Session: "small", Kind: store.Flow, ID: "1"})
	if errors.Is(noRecord, store.ErrNotFound) {
		noRecord = nil
	}
	_, noLeases := s.Load(ctx, store.Replicas)
	for what, err := range map[string]error{
		"a lease":         s.Commit(ctx, store.Replicas, store.Change{Kind: store.Lease, ID: "1", TTL: time.Hour, Value: []byte("x")}),
		"the leases":      noLeases,
		"a ping":          s.Ping(ctx),
		"a small change":  s.Commit(ctx, "small", small),
		"a small record":  noRecord,
		"a session's end": s.End(ctx, "small"),
	} {
		if err != nil {
			t.Errorf("%s, behind large records: %v", what, err)
		}
	}
	write("another", "modest")
	if key := <-f.stalled; !strings.Contains(key, "modest") {
		t.Errorf("before what another one has that is large goes %s", key)
	}
	close(f.goOn)
	writing.Wait()
}

// A record that comes behind the end of its session is nobody's, and nobody would remove it.
func TestALargeRecordDoesNotOutliveItsSession(t *testing.T) {
	f := newSlowServer(t)
	s := open(t, "redis://"+f.Addr().String())
	committed := make(chan error)
	go func() { committed <- s.Commit(t.Context(), "s", large("1")) }()
	<-f.stalled
	if err := s.End(t.Context(), "s"); err != nil {
		t.Error(err)
	}
	close(f.goOn)
	err := <-committed
	if _, conflict := errors.AsType[*store.ConflictError](err); !conflict {
		t.Errorf("it is kept: %v", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if last := f.scripts[len(f.scripts)-1]; last != endScript.sha || !slices.Contains(f.scripts, commitScript.sha) {
		t.Errorf("the server ran %q", f.scripts)
	}
	if len(s.underway.of) != 0 {
		t.Errorf("of %d sessions something is under way", len(s.underway.of))
	}
}

// What is large waits for the bytes of others, and then takes as long as its own: its time begins with its turn. That it is over says
// nothing about the server.
func TestWhatIsLargeHasItsTimeFromItsTurnOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Store{large: turns.New(1)}
		patience, lose := context.WithCancel(t.Context())
		operations, cancel := context.WithTimeout(patience, time.Second)
		defer cancel()
		ctx := store.WithTurn(operations, store.Turn{Owner: "a", Patience: patience})
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		began := time.Now()
		var before sync.WaitGroup
		before.Go(func() {
			_ = s.inTurn(ctx, "s", 0, func(context.Context) error { time.Sleep(turnPatience / 2); return nil })
		})
		synctest.Wait()
		err := s.inTurn(ctx, "s", 8*leastRate, hang)
		if took := time.Since(began); !errors.Is(err, store.ErrSlow) || took != turnPatience/2+largeTimeout+8*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		before.Wait()

		before.Go(func() { _ = s.inTurn(ctx, "s", 1000*leastRate, hang) })
		synctest.Wait()
		began = time.Now()
		err = s.inTurn(ctx, "s", 0, hang)
		if took := time.Since(began); !errors.Is(err, store.ErrSlow) || took != turnPatience {
			t.Errorf("without a turn, after %v: %v", took, err)
		}
		lose() // the process is about to end
		before.Wait()
		if took := time.Since(began); took != turnPatience {
			t.Errorf("it ends %v later", took)
		}
	})
}

// One record of a session, of which this process' copy is out of date, is read without all others, which may be a hundred megabytes.
func TestOneRecordIsReadWithoutItsSession(t *testing.T) {
	f := newSlowServer(t)
	m := store.NewMonitored(open(t, "redis://"+f.Addr().String()), func(bool, error) {})
	s, err := store.NewSealed(m, []store.Key{{1}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Fresh(t.Context(), s, store.Address{Session: "s", Kind: store.Session}); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.Contains(f.scripts, loadScript.sha) {
		t.Error("the whole session is read")
	}
}

// A script copies what it is given, and the server does nothing else meanwhile: large values go ahead of it. Where the user may not
// rename, as those of earlier versions, they go with it.
func TestLargeValuesGoAheadOfTheirScript(t *testing.T) {
	server := redistest.Start(t)
	server.Must("ACL", "SETUSER", "earlier", "on", ">p", "~*", "&*", "+@all", "-rename")
	for user, renames := range map[string]bool{"": true, "earlier:p@": false} {
		server.Must("CONFIG", "RESETSTAT")
		s := open(t, "redis://"+user+server.Addr())
		session := "s" + user
		c, at := large("1"), store.Address{Session: session, Kind: store.Flow, ID: "1"}
		for version := range uint64(3) {
			c.Replaces = version
			if err := s.Commit(t.Context(), session, c); err != nil {
				t.Fatal(err)
			}
			if _, conflict := errors.AsType[*store.ConflictError](s.Commit(t.Context(), session, c)); !conflict {
				t.Error("it replaces what is not there any more")
			}
			if r, err := s.Get(t.Context(), at); err != nil || r.Version != version+1 || !bytes.Equal(r.Value, c.Value) || r.TTL < c.TTL/2 {
				t.Errorf("version %d of %d bytes for %v, %v", r.Version, len(r.Value), r.TTL, err)
			}
		}
		if got := strings.Contains(server.Text("INFO", "commandstats"), "cmdstat_rename:calls=3,"); got != renames || s.stays.Load() == renames {
			t.Errorf("%q: renames %v", user, got)
		}
		if err := s.End(t.Context(), session); err != nil {
			t.Error(err)
		}
		server.Must("DEL", "mcp-bridge:ping")
		if keys := server.Do("DBSIZE"); keys != ":0" {
			t.Errorf("%q: %s keys are left", user, keys)
		}
	}
}
