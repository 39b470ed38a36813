package redisstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/redistest"
	"github.com/mcpbridge/bridge/internal/testprocess"
	"github.com/mcpbridge/bridge/sessions/sessionstest"
	"github.com/mcpbridge/bridge/sessions/store"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var background = context.Background()

func open(t *testing.T, url string) *Store {
	t.Helper()
	s, err := Open(background, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func contract(t *testing.T, url string) {
	t.Helper()
	sessionstest.Run(t, sessionstest.Engine{
		Open:    func(t *testing.T) store.Store { return open(t, url) },
		Another: func(t *testing.T, _ store.Store) store.Store { return open(t, url) },
	})
}

func TestContractWithOneServer(t *testing.T) {
	server := redistest.Start(t)
	contract(t, "redis://"+server.Addr())
}

// TestContractWithCrashes: between any two operations the process that has the store ends
// without a word, and from time to time the server, which persists.
func TestContractWithCrashes(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	crashes := 0
	sessionstest.Run(t, sessionstest.Engine{
		Open: func(t *testing.T) store.Store { return open(t, "redis://"+server.Addr()) },
		Crash: func(t *testing.T, s store.Store) store.Store {
			if crashes++; crashes%20 == 0 {
				server.Kill()
				server.Restart()
				for tries := 0; server.Do("PING") != "+PONG" && tries < 10_000; tries++ { // it reads what it kept
				}
			}
			defer func() { _ = s.Close() }()
			return open(t, "redis://"+server.Addr())
		},
	})
	if crashes == 0 {
		t.Error("nothing crashed")
	}
}

// TestContractWithAUserOfFewRights: the rights that docs/scaling.md names suffice.
func TestContractWithAUserOfFewRights(t *testing.T) {
	server := redistest.Start(t)
	server.Must("ACL", "SETUSER", "bridge", "on", ">p@ss", "~mine:*", "resetchannels", "-@all",
		"+get", "+getrange", "+set", "+del", "+unlink", "+exists", "+sadd", "+srem", "+scard", "+smembers", "+srandmember", "+pttl", "+pexpire", "+eval", "+evalsha", "+scan", "+role",
		"+hello", "+auth", "+select", "+client|tracking", "+client|caching", "+client|setname", "+multi", "+exec", "+script|load", "+ping")
	contract(t, "redis://bridge:p%40ss@"+server.Addr()+"/3?prefix=mine:")
	server.Must("SELECT", "0")
	if keys := server.Do("DBSIZE"); keys != ":0" {
		t.Errorf("database 0 has %s keys", keys)
	}
}

func TestContractWithASentinel(t *testing.T) {
	primary := redistest.Start(t)
	conf := t.TempDir() + "/sentinel.conf"
	text := fmt.Sprintf("sentinel monitor main 127.0.0.1 %d 1\n", primary.Port)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	sentinel := redistest.StartSentinel(t, conf)
	contract(t, "redis+sentinel://"+sentinel.Addr()+"/main")
}

func TestContractWithACluster(t *testing.T) {
	contract(t, "redis+cluster://"+redistest.Cluster(t)[0].Addr())
}

func TestContractWithTLS(t *testing.T) {
	server, ca := redistest.StartTLS(t)
	contract(t, "rediss://"+server.Addr()+"?ca="+ca)
	if _, err := Open(background, "rediss://"+server.Addr()); err == nil {
		t.Error("a certificate that nobody vouches for passes")
	}
}

func TestURLs(t *testing.T) {
	for url, want := range map[string]string{
		"redis://":                                    "[localhost:6379] db 0 single prefix mcp-bridge:",
		"redis://a":                                   "[a:6379] db 0 single prefix mcp-bridge:",
		"redis://[::1]/2?prefix=x:":                   "[[::1]:6379] db 2 single prefix x:",
		"rediss://u:p@a:1":                            "[a:1] db 0 single tls user u prefix mcp-bridge:",
		"redis+sentinel://a,b:1/main/4?tls=true":      "[a:26379 b:1] db 4 tls of main prefix mcp-bridge:",
		"redis+cluster://a:1,b,c":                     "[a:1 b:6379 c:6379] db 0 prefix mcp-bridge:",
		"redis+sentinel://u:p@a/m?sentinel-user=sent": "[a:26379] db 0 user u sentinel user sent of m prefix mcp-bridge:",
	} {
		o, prefix, err := parse(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		got := fmt.Sprintf("%v db %d", o.InitAddress, o.SelectDB)
		if o.ForceSingleClient {
			got += " single"
		}
		if o.TLSConfig != nil {
			got += " tls"
		}
		if o.Username != "" {
			got += " user " + o.Username
		}
		if o.Sentinel.Username != "" {
			got += " sentinel user " + o.Sentinel.Username
		}
		if o.Sentinel.MasterSet != "" {
			got += " of " + o.Sentinel.MasterSet
		}
		if got += " prefix " + prefix; got != want {
			t.Errorf("%s\n got %s\nwant %s", url, got, want)
		}
	}
}

func TestBadURLsAreRefusedWithoutTheirPasswords(t *testing.T) {
	for _, url := range []string{
		"http://u:sesame@a", "redis://u:sesame@a/x", "redis://u:sesame@a/-1", "redis+cluster://u:sesame@a/1", "redis+sentinel://u:sesame@a",
		"redis://u:sesame@a?prefix={", "redis://u:sesame@a?foo=1", "rediss://u:sesame@a?ca=/nowhere", "redis://u:sesame@a:b:%zz",
		"rediss://u:sesame@a?cert=/nowhere",
	} {
		if _, err := Open(background, url); err == nil || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: got %v", url, err)
		}
	}
}

// The start or the end of a password with a character that has to be escaped was in the error and in the log, and was looked up as a host.
func TestNothingOfAPasswordThatIsNotEscapedIsShown(t *testing.T) {
	for _, scheme := range []string{"redis://", "rediss://", "redis+sentinel://", "redis+cluster://"} {
		for _, end := range []string{"", "/0", "/main", "?tls=true", "/main?prefix=x"} {
			for _, user := range []string{"", "bridge"} {
				for _, mark := range []string{"/", "?", "#", "/7?", "?tls=", "#@", "@/", "/@", "?prefix=1&"} {
					notShown(t, scheme+user+":sesame"+mark+"opensesame@127.0.0.1:1"+end, "percent-encoded")
				}
			}
		}
		for url, want := range map[string]string{
			"u:sesame":                          "is none", // the host was forgotten
			"u:sesame/0":                        "is none",
			"127.0.0.1:1,u:sesame":              "is none",
			"[u:sesame]":                        "is none",
			"127.0.0.1:1/m/sesame":              "is no",
			"a/m?prefix=1&sesame=2":             "parameters",
			"a/m?sentinel-password=open&sesame": "parameters",
			"a/m?sentinel-password=100%sesame":  "escaping",
			"a/m?sentinel-password=open;sesame": "escaping",
			"a/m?sentinel-password=open#sesame": "percent-encoded",
			"a/m?sentinel-password=open@sesame": "percent-encoded",
		} {
			notShown(t, scheme+url, want)
		}
	}
	for _, url := range []string{"sesame://a", "sesame", "redis:u:sesame@a", "sesame/sesame@a"} {
		notShown(t, url, "store's URL")
	}
}

func notShown(t *testing.T, url, want string) {
	t.Helper()
	if _, _, err := parse(url); err == nil || strings.Contains(err.Error(), "sesame") || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %v", url, err)
	}
}

func flow(value string) store.Change {
	return store.Change{Kind: store.Flow, ID: "f", Replaces: store.Any, TTL: time.Hour, Value: []byte(value)}
}

// TestCopiesFollowChanges: what a replica keeps of a session is renewed when another
// one changes it, and asks nothing of the server as long as nobody does.
func TestCopiesFollowChanges(t *testing.T) {
	server := redistest.Start(t)
	mine, other := open(t, "redis://"+server.Addr()), open(t, "redis://"+server.Addr())
	session := store.Name("s")
	at := store.Address{Session: session, Kind: store.Session}
	write := func(version uint64, value string) {
		t.Helper()
		c := store.Change{Kind: store.Session, Replaces: version, TTL: time.Hour, Value: []byte(value)}
		if err := other.Commit(background, session, c); err != nil {
			t.Fatal(err)
		}
	}
	read := func() string {
		t.Helper()
		r, err := mine.Get(background, at)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		return string(r.Value)
	}
	until := func(want string) {
		t.Helper()
		look := time.NewTicker(time.Millisecond)
		defer look.Stop()
		for range 5000 {
			if read() == want {
				return
			}
			<-look.C
		}
		t.Fatalf("still %q, want %q", read(), want)
	}
	write(0, "first")
	until("first")
	before := server.Commands()
	for range 1000 {
		read()
	}
	if asked := server.Commands() - before; asked > 10 {
		t.Errorf("1000 reads asked the server %d times", asked)
	}
	write(1, "second")
	until("second")
	if err := other.End(background, session); err != nil {
		t.Fatal(err)
	}
	until("")
}

func TestServerThatIsGoneAndComesBack(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, "redis://"+server.Addr())
	server.Kill()
	ctx, cancel := context.WithTimeout(background, 10*time.Second)
	defer cancel()
	if err := s.Commit(ctx, "session", flow("x")); err == nil {
		t.Error("a server that is gone keeps records")
	}
	server.Restart()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for s.Commit(ctx, "session", flow("x")) != nil {
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatal("it does not come back")
		}
	}
}

func TestServerThatDoesNotAnswerIsGivenUp(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, "redis://"+server.Addr())
	server.Signal(testprocess.Stop)
	defer server.Signal(testprocess.Continue)
	ctx, cancel := context.WithTimeout(background, 50*time.Millisecond)
	defer cancel()
	if err := s.Commit(ctx, "session", flow("x")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestServerThatIsFullOrReadOnlySaysSo(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, "redis://"+server.Addr())
	server.Must("CONFIG", "SET", "maxmemory", "1")
	for what, err := range map[string]error{"ping": s.Ping(background), "commit": s.Commit(background, "session", flow("x"))} {
		if err == nil || !strings.Contains(err.Error(), "OOM") {
			t.Errorf("full: %s: got %v", what, err)
		}
	}
	server.Must("CONFIG", "SET", "maxmemory", "0")
	server.Must("REPLICAOF", "127.0.0.1", "1")
	for what, err := range map[string]error{"ping": s.Ping(background), "commit": s.Commit(background, "session", flow("x"))} {
		if err == nil || !strings.Contains(err.Error(), "READONLY") {
			t.Errorf("read-only: %s: got %v", what, err)
		}
	}
}

func TestExpiredRecordsLeaveTheServer(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, "redis://"+server.Addr())
	c := flow("x")
	c.TTL = 5 * time.Millisecond
	if err := s.Commit(background, "session", c); err != nil {
		t.Fatal(err)
	}
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for range 5000 {
		if server.Do("EXISTS", s.keyOf(store.Address{Session: "session", Kind: store.Flow, ID: "f"})) == ":0" {
			return
		}
		<-look.C
	}
	t.Error("it is still there")
}

// TestWholeSessionsAreReadOnConnectionsOfTheirOwn, a few at a time: a large one holds up no change and no lease.
func TestWholeSessionsAreReadOnConnectionsOfTheirOwn(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, "redis://"+server.Addr())
	connections := func() int { return strings.Count(server.Text("CLIENT", "LIST"), "name=mcp-bridge") }
	before := connections()
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if _, err := s.Load(background, store.Name(strconv.Itoa(i))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if own := connections() - before; own < 1 || own > loadsAtOnce {
		t.Errorf("%d connections more", own)
	}
}
