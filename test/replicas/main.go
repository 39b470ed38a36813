//go:build unix

// Command replicas drives calls through several bridges that share a Redis, behind nginx
// and HAProxy without affinity, while replicas are killed, paused, cut off and restarted,
// and accounts for every call: it must end with its own result, or with an error that
// tells the truth, and nothing may run twice that must not.
//
//	go run ./test/replicas -calls 20000
//	go run ./test/replicas -calls 20000 -store file
//	go run ./test/replicas -calls 5000 -rolling
//
// Everything runs on loopback. It exits with 1 when a call was lost, doubled or crossed
// with another, or when something that was ended went on.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// settings of a run.
type settings struct {
	calls, clients, replicas int
	seed                     uint64
	store                    string
	binary, other            string
	every                    time.Duration
	troubles                 []trouble
	rolling                  bool
	unload                   time.Duration
}

func main() {
	var s settings
	flag.IntVar(&s.calls, "calls", 20_000, "how many calls")
	flag.IntVar(&s.clients, "clients", 40, "how many clients at a time")
	flag.IntVar(&s.replicas, "replicas", 3, "how many replicas")
	flag.Uint64Var(&s.seed, "seed", 1, "of the random plans")
	flag.StringVar(&s.store, "store", "redis", "redis, or file: one bridge")
	flag.StringVar(&s.binary, "bridge", "", "the bridge's binary; empty: build it")
	flag.StringVar(&s.other, "other", "", "a binary of another version, which replicas are after every second restart")
	flag.DurationVar(&s.every, "every", time.Second, "how often trouble begins, on average")
	list := flag.String("troubles", "kills,pauses,partitions,restarts,redis restarts", "which kinds of trouble there are")
	flag.BoolVar(&s.rolling, "rolling", false, "the only trouble is one rolling restart after another, and no call may fail")
	flag.DurationVar(&s.unload, "unload", 0, "have calls that wait leave memory after this time, and their clients poll; 0: as by default")
	flag.Parse()
	for name := range strings.SplitSeq(*list, ",") {
		s.troubles = append(s.troubles, trouble(name))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	bad, err := run(ctx, &s)
	if err != nil {
		fmt.Fprintln(os.Stderr, "replicas:", err)
		os.Exit(2)
	}
	if bad > 0 {
		os.Exit(1)
	}
}

// run returns how many things were as none may be.
func run(ctx context.Context, s *settings) (bad int, err error) {
	book := newLedger()
	b, err := newStand(ctx, s, book)
	if err != nil {
		return 0, err
	}
	defer b.close()
	ctx, b.giveUp = context.WithCancelCause(ctx)
	defer b.giveUp(nil)
	began := time.Now()
	haunted, stop := context.WithCancel(ctx)
	var haunting sync.WaitGroup
	haunting.Go(func() {
		if s.rolling {
			b.roll(haunted, book)
		} else {
			b.haunt(haunted, s, book)
		}
	})
	drive(ctx, s, b.urls, book)
	stop()
	haunting.Wait()
	fmt.Fprintf(os.Stdout, "%s store, %.1f s, seed %d: ", s.store, time.Since(began).Seconds(), s.seed)
	book.report(os.Stdout)
	bad = book.bad(s.rolling)
	b.keep = bad > 0
	return bad, context.Cause(ctx)
}

// drive has all clients make their calls.
func drive(ctx context.Context, s *settings, urls []string, book *ledger) {
	var next atomic.Int64
	var clients sync.WaitGroup
	for i := range s.clients {
		clients.Go(func() {
			c := &client{
				urls: urls, ledger: book, patient: time.Minute,
				random: rand.New(rand.NewPCG(s.seed, uint64(i)+1)), //nolint:gosec // plans, not secrets
				http:   &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
			}
			c.work(ctx, s, &next)
		})
	}
	clients.Wait()
}

// work makes calls, in a new session now and then.
func (c *client) work(ctx context.Context, s *settings, next *atomic.Int64) {
	for ctx.Err() == nil {
		if err := c.open(ctx); err != nil {
			pause(ctx, 50*time.Millisecond)
			continue
		}
		for range 1 + c.random.IntN(100) {
			n := next.Add(1)
			if n > int64(s.calls) {
				c.shut(ctx)
				return
			}
			p := newPlan(c.random, fmt.Sprintf("c%d", n))
			c.call(ctx, &p)
		}
		c.shut(ctx)
	}
}
