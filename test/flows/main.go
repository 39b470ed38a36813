// Command flows has a bridge keep very many questions that wait for their answers, and looks
// what that costs: the questions are in a file, and not in memory.
//
//	go run ./test/flows -flows 1000000 -sessions 100000
//
// Clients are of 2025-11-25 and poll: none keeps a connection. The bridge is a process of its own, so that its
// memory can be told. It exits with 1 unless every call was asked its question, none of
// them is in the bridge's memory afterwards, all that were answered got the result of their own
// call, and what the bridge holds is within -resident.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/test/program"
)

func main() {
	var p plan
	flag.IntVar(&p.flows, "flows", 1_000_000, "how many questions wait at the same time")
	flag.IntVar(&p.sessions, "sessions", 100_000, "of how many sessions they are")
	flag.IntVar(&p.clients, "clients", 100, "how many sessions begin at the same time")
	flag.IntVar(&p.answers, "answers", 1000, "how many of the questions are answered")
	flag.Int64Var(&p.resident, "resident", 512<<20, "how many bytes of the bridge may be resident")
	flag.StringVar(&p.durability, "durability", "strict", "store.durability")
	flag.StringVar(&p.bridge, "bridge", "", "the program; empty: it is built")
	flag.StringVar(&p.dir, "dir", "", "where the store's file is made; empty: in a temporary directory")
	flag.Parse()
	if err := p.run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "flows:", err)
		os.Exit(1)
	}
}

// plan says what is done.
type plan struct {
	flows, sessions, clients, answers int
	resident                          int64
	durability, bridge, dir           string
}

// flow is a call that waits.
type flow struct {
	session  string
	question string
	last     string // id of the last event
	nonce    string
}

func (p *plan) run(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp(p.dir, "flows")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	server := httptest.NewServer(asking{})
	defer server.Close()
	admin := filepath.Join(dir, "admin")
	file := filepath.Join(dir, "flows.db")
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte(token), 0o600); err != nil {
		return err
	}
	perSession := (p.flows + p.sessions - 1) / p.sessions
	b, err := program.Start(ctx, p.bridge, server.URL,
		"--store.url", "file:"+file, "--store.durability", p.durability, "--store.unload", "1s", "--timeouts.poll", "1s", "--timeouts.poll-pause", "4m",
		"--timeouts.flow", "24h", "--timeouts.server-request", "24h", "--timeouts.session-idle", "24h",
		"--limits.memory", strconv.FormatInt(p.resident>>20, 10)+"MiB",
		"--limits.sessions", strconv.Itoa(p.sessions*8/7+8), // of which one address does not get the last eighth
		"--limits.flows", strconv.Itoa(perSession), "--limits.in-flight", strconv.Itoa(max(256, perSession)),
		"--admin.listen", "unix:"+admin, "--admin.token-file", filepath.Join(dir, "token"))
	if err != nil {
		return err
	}
	defer b.Stop()
	w := newWorld(b.URL, admin, p.clients)
	began := time.Now()
	flows, err := p.begin(ctx, w, perSession)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d calls of %d sessions were asked, in %s\n", len(flows), p.sessions, time.Since(began).Round(time.Second))
	if err := w.untilForgotten(ctx); err != nil {
		return err
	}
	size, err := os.Stat(file)
	if err != nil {
		return err
	}
	now, most, err := held(b)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "none of them is in memory; resident %s, of it its own %s, the file's pages %s; at most %s; the file has %s\n",
		mebi(now.all), mebi(now.anonymous), mebi(now.file), mebi(most), mebi(size.Size()))
	if err := p.answer(ctx, w, flows, out); err != nil {
		return err
	}
	if now.all > p.resident {
		return fmt.Errorf("%s are resident, more than %s", mebi(now.all), mebi(p.resident))
	}
	return nil
}

// begin opens the sessions and makes their calls, and returns them as they wait.
func (p *plan) begin(ctx context.Context, w *world, perSession int) ([]flow, error) {
	var (
		next   atomic.Int64
		all    sync.WaitGroup
		mu     sync.Mutex
		flows  []flow
		failed error
	)
	for range min(p.clients, p.sessions) {
		all.Go(func() {
			for n := next.Add(1); n <= int64(p.sessions); n = next.Add(1) {
				some, err := w.suspend(ctx, int(n), min(perSession, p.flows-(int(n)-1)*perSession))
				mu.Lock()
				flows, failed = append(flows, some...), errors.Join(failed, err)
				stop := failed != nil
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	all.Wait()
	if failed == nil && len(flows) != p.flows {
		failed = fmt.Errorf("%d calls were asked, want %d", len(flows), p.flows)
	}
	return flows, failed
}

// answer answers some of the questions, one after the other, and fetches their results.
func (p *plan) answer(ctx context.Context, w *world, flows []flow, out io.Writer) error {
	n := min(p.answers, len(flows))
	if n == 0 {
		return nil
	}
	var taken []time.Duration
	for i := range n {
		f := &flows[i*(len(flows)/n)]
		began := time.Now()
		if err := w.answer(ctx, f); err != nil {
			return fmt.Errorf("answer %d: %w", i, err)
		}
		taken = append(taken, time.Since(began))
	}
	slices.Sort(taken)
	fmt.Fprintf(out, "%d of them answered, each with the result of its own call; answer and result took %s (median), %s (99 %%)\n",
		n, taken[n/2].Round(100*time.Microsecond), taken[n*99/100].Round(100*time.Microsecond))
	return nil
}

func mebi(n int64) string { return strconv.FormatInt(n>>20, 10) + " MiB" }

// memory is what a process has, in bytes.
type memory struct{ all, anonymous, file int64 }

// held is the memory of the bridge, once it has been idle for a moment, and the most that was
// ever resident.
func held(b *program.Bridge) (now memory, most int64, err error) {
	for range 10 { // the collector gives back what it does not need, little by little
		var m memory
		if m.all, most, err = b.Resident(); err != nil {
			return now, most, err
		}
		if m.anonymous, m.file, err = b.Kinds(); err != nil {
			return now, most, err
		}
		if now.all == 0 || m.all < now.all {
			now = m
		}
		time.Sleep(500 * time.Millisecond)
	}
	return now, most, nil
}
