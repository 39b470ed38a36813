// Command chaos drives calls through the bridge while server, network and clients
// misbehave, and accounts for every one of them: each must end once, with its own
// result or with an error that says why, and nothing may run twice that must not.
//
//	go run ./test/chaos -calls 100000
//
// The server is told by each call what to do to it. Everything runs on loopback. It
// exits with 1 when a call was lost, hung, crossed with another, ran twice, or failed
// without a reason.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/test/program"
)

// settings of a run.
type settings struct {
	calls, clients int
	seed           uint64
	faults         float64
	outage         time.Duration
	binary         string
	verbose        bool
}

func main() {
	var s settings
	flag.IntVar(&s.calls, "calls", 100_000, "how many calls")
	flag.IntVar(&s.clients, "clients", 40, "how many clients at a time")
	flag.Uint64Var(&s.seed, "seed", 1, "of the random plans")
	flag.Float64Var(&s.faults, "faults", 0.5, "the share of calls with a fault, and of calls with a habit")
	flag.DurationVar(&s.outage, "outage", 5*time.Second, "how often the server goes away for a moment; 0: never")
	flag.StringVar(&s.binary, "bridge", "", "the bridge's binary; empty: build it")
	flag.BoolVar(&s.verbose, "v", false, "print every reason")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	bad, err := run(ctx, &s)
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(2)
	}
	if bad > 0 {
		os.Exit(1)
	}
}

// run returns how many calls ended as none may.
func run(ctx context.Context, s *settings) (bad int, err error) {
	book := newLedger()
	up := &server{ledger: book}
	if err := up.start(); err != nil {
		return 0, err
	}
	defer up.stop()
	b, err := program.Start(ctx, s.binary, up.url(), "--timeouts.round", "2s")
	if err != nil {
		return 0, err
	}
	defer b.Stop()
	began := time.Now()
	done := make(chan struct{})
	var outages sync.WaitGroup
	outages.Go(func() { goAway(up, s.outage, done) })
	drive(ctx, s, b.URL, book)
	close(done)
	outages.Wait()
	fmt.Fprintf(os.Stdout, "%d calls in %.1f s, seed %d\n", s.calls, time.Since(began).Seconds(), s.seed)
	book.report(os.Stdout, s.verbose)
	return book.bad(), ctx.Err()
}

// drive has all clients make their calls.
func drive(ctx context.Context, s *settings, url string, book *ledger) {
	var next atomic.Int64
	var clients sync.WaitGroup
	for i := range s.clients {
		clients.Go(func() {
			c := &client{
				url: url, ledger: book, patient: 30 * time.Second,
				random: rand.New(rand.NewPCG(s.seed, uint64(i))), //nolint:gosec // plans, not secrets
				http:   &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}},
			}
			defer c.http.CloseIdleConnections()
			c.work(ctx, s, &next)
		})
	}
	clients.Wait()
}

// work makes calls, in a new session now and then.
func (c *client) work(ctx context.Context, s *settings, next *atomic.Int64) {
	for ctx.Err() == nil {
		if err := c.open(ctx); err != nil {
			c.ledger.note("no session: " + err.Error())
			time.Sleep(50 * time.Millisecond)
			continue
		}
		for range 1 + c.random.IntN(50) {
			n := next.Add(1)
			if n > int64(s.calls) {
				c.shut(ctx)
				return
			}
			p := newPlan(c.random, fmt.Sprintf("c%d", n), s.faults)
			c.call(ctx, &p)
		}
		c.shut(ctx)
	}
}

// goAway takes the server away for a moment, again and again.
func goAway(s *server, every time.Duration, done <-chan struct{}) {
	if every <= 0 {
		return
	}
	for {
		select {
		case <-done:
			return
		case <-time.After(every):
		}
		s.stop()
		time.Sleep(300 * time.Millisecond)
		for s.start() != nil {
			time.Sleep(10 * time.Millisecond)
		}
	}
}
