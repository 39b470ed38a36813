//go:build unix

package main

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/redistest"
	"github.com/mcpbridge/bridge/sessions/boltstore"
	"github.com/mcpbridge/bridge/sessions/redisstore"
	"github.com/mcpbridge/bridge/sessions/store"
)

// configuration writes a file that names a store.
func configuration(t *testing.T, url, keys string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bridge.yaml")
	text := "upstream: http://127.0.0.1:1/mcp\nstore:\n  url: \"" + url + "\"\n  keys: \"" + keys + "\"\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestValidateLooksIntoStoredFiles: at whole ones, cut ones, those of other keys and newer ones.
func TestValidateLooksIntoStoredFiles(t *testing.T) {
	server := httptest.NewServer(newAsker(t))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "sessions.db")
	k := launch(t, "--upstream", server.URL, "--store.url", "file:"+path)
	for range 50 {
		k.session = ""
		k.session = k.request(http.MethodPost, initializeAsking).Header.Get("Mcp-Session-Id")
	}
	k.kill()
	if text := prints(t, nil, "config", "validate", configuration(t, "file:"+path, "")); strings.Contains(text, "note:") {
		t.Errorf("of a whole store: %s", text)
	}
	if err := fails(t, nil, "config", "validate", configuration(t, "file:"+path, keyFile(t))); !strings.Contains(err.Error(), "store.keys") || !strings.Contains(err.Error(), "open none of the 50 records") {
		t.Errorf("with another key: %v", err)
	}
	keys, err := store.ReadKeys(path + ".keys")
	if err != nil {
		t.Fatal(err)
	}
	newer(t, path, keys)
	if text := prints(t, nil, "config", "validate", configuration(t, "file:"+path, "")); !strings.Contains(text, "note: store: a newer version of the bridge wrote 1 of the 51 records") {
		t.Errorf("with a newer record: %s", text)
	}
	if err := os.Truncate(path, int64(4*os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	if err := fails(t, nil, "config", "validate", configuration(t, "file:"+path, "")); !strings.Contains(err.Error(), "damaged") || !strings.Contains(err.Error(), path) {
		t.Errorf("of a part of a store: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := fails(t, nil, "config", "validate", configuration(t, "file:"+path, "")); !strings.Contains(err.Error(), "it is missing, and there is a journal of it") {
		t.Errorf("of a store whose file is gone: %v", err)
	}
}

// newer adds a record of a format that this bridge does not know.
func newer(t *testing.T, path string, keys []store.Key) {
	t.Helper()
	s, err := boltstore.Open(path, boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := store.NewSealed(s, keys)
	if err != nil {
		t.Fatal(err)
	}
	c := store.Change{Kind: store.Session, TTL: time.Hour, Value: []byte{200, 0, 0, 0, 0, 1}}
	if err := sealed.Store.Commit(t.Context(), store.Name("newer"), c); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCheckLooksIntoAStore: a good one, one in use, one that is damaged and one that cannot be reached.
func TestCheckLooksIntoAStore(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(newAsker(t))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "sessions.db")
	k := launch(t, "--upstream", server.URL, "--store.url", "file:"+path)
	if out, err := runCheck(t, "--store.url", "file:"+path, server.URL); err != nil || !strings.Contains(out, "store          file, can be used") || !strings.Contains(out, "- a running bridge has it open") {
		t.Errorf("%v: %s", err, out)
	}
	k.kill()
	if out, err := runCheck(t, "--store.url", "file:"+path, "--json", server.URL); err != nil || !strings.Contains(out, `"kind": "file"`) {
		t.Errorf("%v: %s", err, out)
	}
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	if out, err := runCheck(t, "--store.url", "file:"+path, server.URL); err == nil || !strings.Contains(err.Error(), "store") || !strings.Contains(out, "cannot be used: store.url: ") || !strings.Contains(out, "damaged") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := runCheck(t, "--store.url", "redis://127.0.0.1:1", "--store.keys", keyFile(t), server.URL); err == nil || !strings.Contains(out, "redis, cannot be used") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := runCheck(t, server.URL); err != nil || strings.Contains(out, "store") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestValidateLooksIntoStoredRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	url, keys := "redis://"+server.Addr(), keyFile(t)
	file := configuration(t, url, keys)
	prints(t, nil, "config", "validate", file)

	server.Must("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	if err := fails(t, nil, "config", "validate", file); !strings.Contains(err.Error(), "allkeys-lru") || !strings.Contains(err.Error(), "noeviction") {
		t.Errorf("one that evicts: %v", err)
	}
	server.Must("CONFIG", "SET", "maxmemory-policy", "noeviction")

	foreign, err := redisstore.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if err := foreign.Commit(t.Context(), store.Name("x"), store.Change{Kind: store.Session, TTL: time.Hour, Value: []byte(base64.StdEncoding.EncodeToString(make([]byte, 99)))}); err != nil {
		t.Fatal(err)
	}
	if err := foreign.Close(); err != nil {
		t.Fatal(err)
	}
	if text := prints(t, nil, "config", "validate", file); !strings.Contains(text, "a newer version") {
		t.Errorf("with what is no record: %s", text)
	}

	server.Must("CONFIG", "SET", "maxmemory", "1")
	if err := fails(t, nil, "config", "validate", file); !strings.Contains(err.Error(), "OOM") {
		t.Errorf("one that is full: %v", err)
	}
	server.Must("CONFIG", "SET", "maxmemory", "0")
	server.Must("REPLICAOF", "127.0.0.1", "1")
	if err := fails(t, nil, "config", "validate", file); !strings.Contains(err.Error(), "READONLY") {
		t.Errorf("one that is read-only: %v", err)
	}
	server.Must("REPLICAOF", "NO", "ONE")

	server.Signal(syscall.SIGSTOP) // it answers nothing, ever so slowly
	defer server.Signal(syscall.SIGCONT)
	if err := fails(t, nil, "config", "validate", file); !strings.Contains(err.Error(), "store.url") {
		t.Errorf("one that does not answer: %v", err)
	}
}

// TestServeSaysWhatIsWrongWithItsStore: it serves all the same, but nobody learns only from clients that begin
// anew that the keys are others, or that Redis removes what it does not like to keep.
func TestServeSaysWhatIsWrongWithItsStore(t *testing.T) {
	server := httptest.NewServer(newAsker(t))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "sessions.db")
	serve := func(args ...string) *process {
		return start(t, append([]string{"serve", "--listen=127.0.0.1:0", "--log.format=json", "--upstream", server.URL}, args...)...)
	}
	first := serve("--store.url", "file:"+path)
	k := &killable{t: t, url: "http://" + first.address + "/mcp"}
	k.open()
	first.stop()
	_ = first.wait()
	if text := first.errors.String(); strings.Contains(text, `"warn"`) {
		t.Errorf("of a good store it says %s", text)
	}
	serve("--store.url", "file:"+path, "--store.keys", keyFile(t)).expect("the keys open none of the 1 records that were looked at")

	redis := redistest.Start(t)
	redis.Must("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	serve("--store.url", "redis://"+redis.Addr(), "--store.keys", keyFile(t)).expect("maxmemory-policy allkeys-lru")
}

// TestStoreInTheFileOfSettings: every setting of the groups store and replica means the same in YAML as on
// the command line and in the environment.
func TestStoreInTheFileOfSettings(t *testing.T) {
	values := [][2]string{
		{"store.url", "redis://h/2"}, {"store.keys", "/k"}, {"store.durability", "strict"}, {"store.journal", "off"},
		{"store.size", "3MiB"}, {"store.outage", "fail"}, {"store.unload", "7s"}, {"replica.listen", "10.0.0.7:1"}, {"replica.address", "ten:2"},
	}
	var flags []config.Setting
	environ := []string{"BRIDGE_UPSTREAM=http://a/mcp"}
	groups := map[string]string{}
	for _, v := range values {
		flags = append(flags, config.Setting{Key: v[0], Values: []string{v[1]}})
		environ = append(environ, "BRIDGE_"+strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(v[0]))+"="+v[1])
		group, name, _ := strings.Cut(v[0], ".")
		groups[group] += "  " + name + ": " + v[1] + "\n"
	}
	for _, of := range []any{config.Store{}, config.Replica{}} {
		if n := reflect.TypeOf(of).NumField(); strings.Count(groups[strings.ToLower(reflect.TypeOf(of).Name())], "\n") != n {
			t.Errorf("%T has %d settings, some of which are not tried here", of, n)
		}
	}
	file := filepath.Join(t.TempDir(), "bridge.yaml")
	text := "upstream: http://a/mcp\nstore:\n" + groups["store"] + "replica:\n" + groups["replica"]
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var all []config.Config
	for _, from := range []config.Sources{{File: file}, {Environ: environ}, {Environ: environ[:1], Flags: flags}} {
		from.Partly = true // a journal is of no use in Redis
		cfg, err := config.Load(from)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, cfg)
	}
	want := config.Store{URL: "redis://h/2", Keys: "/k", Durability: "strict", Journal: "off", Size: 3 << 20, Outage: "fail", Unload: 7 * time.Second}
	for i := range all {
		if all[i].Store != want || all[i].Replica != (config.Replica{Listen: "10.0.0.7:1", Address: "ten:2"}) {
			t.Errorf("source %d means %+v, %+v", i, all[i].Store, all[i].Replica)
		}
	}
}

// TestAStoreTakesWhatThereIs: where the settings do not say how much.
func TestAStoreTakesWhatThereIs(t *testing.T) {
	size := func(settings config.Store) int64 {
		t.Helper()
		s, _, err := openStore(t.Context(), settings)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		return storeSize(t.Context(), settings, s)
	}
	file := config.Store{URL: "file:" + filepath.Join(t.TempDir(), "sessions.db")}
	if got := size(file); got <= 0 || got > fileSize {
		t.Errorf("a file may take %d bytes", got)
	}
	redis := redistest.Start(t)
	kept := config.Store{URL: "redis://" + redis.Addr(), Keys: keyFile(t)}
	if got := size(kept); got != redisSize {
		t.Errorf("a Redis without bounds may take %d bytes", got)
	}
	redis.Must("CONFIG", "SET", "maxmemory", "400mb")
	if got := size(kept); got != 50<<20 {
		t.Errorf("a Redis of 400 MB may take %d bytes", got)
	}
	kept.Size = 7
	if got := size(kept); got != 7 {
		t.Errorf("with a setting, %d bytes", got)
	}
}
