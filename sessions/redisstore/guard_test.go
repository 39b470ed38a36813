package redisstore

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcpbridge/bridge/internal/redistest"
	"github.com/mcpbridge/bridge/sessions/store"
)

// between is a relay to a server, which says something else once it is told to.
type between struct {
	net.Listener
	to   atomic.Pointer[string] // the server, for connections from then on
	says atomic.Pointer[string] // in place of what the server says
	work sync.WaitGroup
}

func newBetween(t *testing.T, server string) *between {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &between{Listener: l}
	b.to.Store(&server)
	b.work.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			there, err := net.Dial("tcp", *b.to.Load())
			if err != nil {
				_ = client.Close()
				continue
			}
			b.work.Go(func() { b.pump(there, client, false) })
			b.work.Go(func() { b.pump(client, there, true) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); b.work.Wait() })
	return b
}

func (b *between) pump(to, from net.Conn, replies bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		said := buf[:n]
		if other := b.says.Load(); replies && other != nil {
			said = []byte(*other)
		}
		if _, err := to.Write(said); err != nil {
			return
		}
	}
}

// A server that garbles, or who stands between, ends connections and not the process: calls of
// the store fail, and go on when it is itself again.
func TestAServerThatGarblesIsAnOutage(t *testing.T) {
	server := redistest.Start(t)
	for name, reply := range map[string]string{
		"a length below nothing":         "$-5\r\n",
		"a number of values below it":    "*-2\r\n",
		"a map below nothing":            "%-1\r\n",
		"more values than memory":        "*9223372036854775807\r\n",
		"a string longer than memory":    "$9223372036854775807\r\n",
		"endless depth":                  strings.Repeat("*1\r\n", 100_000),
		"more replies than commands":     "+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n",
		"a subscription":                 ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n",
		"a chunk below nothing":          "$?\r\n;-5\r\n",
		"no Redis at all":                "HTTP/1.1 400 Bad Request\r\n\r\n",
		"an array of a push, and more":   "*1\r\n>1\r\n+a\r\n+b\r\n+c\r\n+d\r\n+e\r\n+f\r\n+g\r\n",
		"a reply in a push of its value": "*2\r\n>2\r\n+a\r\n+b\r\n*1\r\n_\r\n*0\r\n*0\r\n*0\r\n*0\r\n*0\r\n*0\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBetween(t, server.Addr())
			s := open(t, "redis://"+b.Addr().String())
			at := store.Address{Session: "s", Kind: store.Session}
			b.says.Store(&reply)
			_, err := s.Get(t.Context(), at)
			err2 := s.Ping(t.Context())
			_, err3 := s.Load(t.Context(), "s")
			if err == nil && err2 == nil && err3 == nil {
				t.Error("nothing failed")
			}
			b.says.Store(nil)
			for tries := 0; ; tries++ { // while it connects again
				if _, err = s.Get(t.Context(), at); errors.Is(err, store.ErrNotFound) && s.Ping(t.Context()) == nil {
					return
				}
				if tries == 100_000 {
					t.Fatal(err)
				}
			}
		})
	}
}

// An address that moves with the primary leads to the new one, though the old one lives on as its replica, with its
// connections.
func TestAServerThatHasBecomeAReplicaIsLeft(t *testing.T) {
	old, primary := redistest.Start(t), redistest.Start(t)
	b := newBetween(t, old.Addr())
	s := open(t, "redis://"+b.Addr().String())
	if err := s.Commit(t.Context(), "before", flow("x")); err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(primary.Addr())
	to := primary.Addr()
	b.to.Store(&to)
	old.Must("REPLICAOF", host, port)
	for session := 0; ; session++ {
		err, err2 := s.Commit(t.Context(), strconv.Itoa(session), flow("x")), s.Ping(t.Context())
		if err == nil && err2 == nil {
			return
		}
		if session == 100_000 {
			t.Fatal(err, err2)
		}
	}
}

// TestADemotionIsHeardWhereverItStands: Redis 6 tells of it behind words of its own where a script has met it. One right after another
// does not count.
func TestADemotionIsHeardWhereverItStands(t *testing.T) {
	for _, text := range []string{
		"READONLY You can't write against a read only replica.",
		"ERR Error running script (call to f_01): @user_script:5: @user_script: 5: -READONLY You can't write against a read only replica.",
	} {
		d := new(demotions)
		d.heard([]byte("ERR unknown command"))
		d.heard([]byte(text))
		d.heard([]byte(text))
		if got := d.count.Load(); got != 1 {
			t.Errorf("%s: %d", text, got)
		}
	}
}

// What a script or a command should never answer is an error, or nothing.
func TestWellFormedNonsenseIsNoRecord(t *testing.T) {
	if got := records("s", []string{"", "1", "1", "v", "x", "1", "no", "v"}); len(got) != 0 {
		t.Errorf("records %v", got)
	}
	s := &Store{prefix: "p:"}
	if got := s.sessions([]string{"", "x", "p:", "p:{", "q:{a}:s", "p:{a}:s", "p:{a}:i"}); len(got) != 1 || got[0] != "a" {
		t.Errorf("sessions %q", got)
	}
}
