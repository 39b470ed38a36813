//go:build unix

package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/internal/testport"
)

// stand is everything that a run needs: a server, bridges that share a store, and
// balancers in front of them.
type stand struct {
	dir      string
	keep     bool // the directory, with what all programs said
	server   *server
	redis    *process // nil with a file
	bridges  []*replica
	balances []*process
	urls     []string // for clients
	giveUp   context.CancelCauseFunc
}

// replica is one bridge, with the links that it has.
type replica struct {
	*process
	busy    sync.Mutex // something is done to it
	toStore *link      // nil with a file
	toPeers *link      // by which others reach it
	other   string     // a program of another version, which it is now and then
}

// drain is how long bridges that stop let running calls finish.
const drain = 20 * time.Second

func newStand(ctx context.Context, s *settings, book *ledger) (_ *stand, err error) {
	b := &stand{}
	if b.dir, err = os.MkdirTemp("", "replicas"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.server, err = startServer(book); err != nil {
		return nil, err
	}
	if s.binary == "" {
		s.binary = filepath.Join(b.dir, "bridge")
		build := exec.CommandContext(ctx, "go", "build", "-o", s.binary, "./cmd/bridge")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return nil, fmt.Errorf("the bridge cannot be built (run this from the repository's root): %w", err)
		}
	}
	if s.store == "file" {
		return b, b.single(s)
	}
	return b, b.several(s)
}

// single starts one bridge that keeps its sessions in a file.
func (b *stand) single(s *settings) error {
	r, err := b.replica(s, "bridge", "--store.url", "file:"+filepath.Join(b.dir, "sessions.db"))
	if err != nil {
		return err
	}
	b.bridges = append(b.bridges, r)
	b.urls = append(b.urls, "http://"+r.address+"/mcp")
	return r.start()
}

func (b *stand) process(name, program, address string, args ...string) *process {
	return &process{name: name, program: program, address: address, args: args, log: filepath.Join(b.dir, name+".log")}
}

// replica returns a bridge that was not started yet.
func (b *stand) replica(s *settings, name string, flags ...string) (*replica, error) {
	address, err := testport.Free()
	if err != nil {
		return nil, err
	}
	args := append([]string{"serve", "--listen", address, "--upstream", b.server.url, "--log.level", "debug", "--log.format", "json", "--timeouts.drain", drain.String()}, flags...)
	if s.unload > 0 {
		args = append(args, "--store.unload", s.unload.String(), "--timeouts.poll", "1s", "--timeouts.poll-pause", "100ms")
	}
	return &replica{process: b.process(name, s.binary, address, args...), other: s.other}, nil
}

// several starts replicas with Redis, and the balancers.
func (b *stand) several(s *settings) error {
	if err := b.startRedis(); err != nil {
		return err
	}
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	keys := filepath.Join(b.dir, "keys")
	if err := os.WriteFile(keys, []byte(base64.StdEncoding.EncodeToString(key[:])+"\n"), 0o600); err != nil {
		return err
	}
	for i := range s.replicas {
		if err := b.addReplica(s, i, keys); err != nil {
			return err
		}
	}
	for name, write := range map[string]func(address string) (program string, args []string, err error){"nginx": b.nginx, "haproxy": b.haproxy} {
		if err := b.balance(name, write); err != nil {
			return err
		}
	}
	return nil
}

func (b *stand) startRedis() error {
	program, err := find("redis-server", "valkey-server")
	if err != nil {
		return err
	}
	address, err := testport.Free()
	if err != nil {
		return err
	}
	_, port, _ := strings.Cut(address, ":")
	// The process dies, not the machine: what was written is kept without fsync.
	b.redis = b.process("redis", program, address,
		"--port", port, "--bind", "127.0.0.1", "--dir", b.dir, "--save", "", "--appendonly", "yes", "--appendfsync", "no",
		"--auto-aof-rewrite-min-size", "1mb") // so that each start takes as long as the first
	return b.redis.start()
}

func (b *stand) addReplica(s *settings, i int, keys string) error {
	listen, err := testport.Free()
	if err != nil {
		return err
	}
	toStore, err := newLink(b.redis.address)
	if err != nil {
		return err
	}
	toPeers, err := newLink(listen)
	if err != nil {
		return err
	}
	r, err := b.replica(s, fmt.Sprintf("bridge-%d", i), "--store.url", "redis://"+toStore.address(), "--store.keys", keys,
		"--store.outage", "wait", "--replica.listen", listen, "--replica.address", toPeers.address())
	if err != nil {
		return err
	}
	r.toStore, r.toPeers = toStore, toPeers
	b.bridges = append(b.bridges, r)
	return r.start()
}

func (b *stand) close() {
	for _, p := range b.balances {
		_ = p.stop(5 * time.Second)
	}
	for _, r := range b.bridges {
		if r.command != nil {
			r.kill()
		}
	}
	if b.redis != nil && b.redis.command != nil {
		b.redis.kill()
	}
	if b.keep {
		fmt.Fprintln(os.Stderr, "what the programs said is in", b.dir)
		return
	}
	_ = os.RemoveAll(b.dir)
}
