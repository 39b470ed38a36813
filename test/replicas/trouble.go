//go:build unix

package main

import (
	"context"
	"math/rand/v2"
	"syscall"
	"time"
)

// trouble is what happens to a replica, or to what it needs.
type trouble string

const (
	kills      trouble = "kills"      // -9, and started again
	pauses     trouble = "pauses"     // for longer than the lease
	partitions trouble = "partitions" // from the store, or from other replicas
	restarts   trouble = "restarts"   // in order
	outages    trouble = "redis restarts"
)

var troubles = []trouble{kills, pauses, partitions, restarts, outages}

// haunt makes trouble until the calls are made, for some replicas at a time.
func (b *stand) haunt(ctx context.Context, s *settings, book *ledger) {
	random := rand.New(rand.NewPCG(s.seed, 0)) //nolint:gosec // plans, not secrets
	at := make(chan struct{}, max(1, len(b.bridges)-1))
	for turn := 0; ctx.Err() == nil; turn++ {
		pause(ctx, s.every/2+time.Duration(random.Int64N(int64(s.every))))
		what := s.troubles[random.IntN(len(s.troubles))]
		if b.redis == nil && what != kills && what != restarts && what != pauses {
			what = kills
		}
		long, kind := random.Float64(), random.IntN(4)
		select {
		case at <- struct{}{}:
		case <-ctx.Done():
			return
		}
		book.did(what)
		go func() {
			defer func() { <-at }()
			if what == outages {
				b.outage(long)
				return
			}
			r := b.bridges[turn%len(b.bridges)]
			r.busy.Lock()
			defer r.busy.Unlock()
			if err := r.suffer(what, long, kind); err != nil {
				b.giveUp(err)
			}
		}()
	}
	for range cap(at) { // what is under way comes to its end
		at <- struct{}{}
	}
}

// roll restarts one replica after the other, as a rolling deploy does: the next one when
// the balancers have had time to notice that the last one is back.
func (b *stand) roll(ctx context.Context, book *ledger) {
	for turn := 0; ctx.Err() == nil; turn++ {
		pause(ctx, settle)
		if ctx.Err() != nil {
			return
		}
		book.did(restarts)
		if err := b.bridges[turn%len(b.bridges)].suffer(restarts, 0, 0); err != nil {
			b.giveUp(err)
		}
	}
}

// settle is how long balancers take at most to see that a replica is back.
const settle = 1500 * time.Millisecond

// outage kills the store, which keeps what it has.
func (b *stand) outage(long float64) {
	b.bridges[0].busy.Lock() // one at a time
	defer b.bridges[0].busy.Unlock()
	b.redis.kill()
	time.Sleep(time.Duration(long * float64(2*time.Second)))
	if err := b.redis.start(); err != nil {
		b.giveUp(err)
	}
}

// suffer has something happen to the replica. long says for how long, from 0 to 1.
func (r *replica) suffer(what trouble, long float64, kind int) error {
	for_ := func(least, most time.Duration) { time.Sleep(least + time.Duration(long*float64(most-least))) }
	switch what {
	case kills:
		r.kill()
		for_(0, time.Second)
		return r.start()
	case restarts:
		if err := r.stop(drain + 15*time.Second); err != nil {
			return err
		}
		if r.other != "" {
			r.program, r.other = r.other, r.program
		}
		return r.start()
	case pauses:
		r.signal(syscall.SIGSTOP)
		for_(3500*time.Millisecond, 6*time.Second)
		r.signal(syscall.SIGCONT)
	case partitions:
		k := r.toStore
		if kind < 2 {
			k = r.toPeers
		}
		k.cut(kind%2 == 0)
		for_(500*time.Millisecond, 6*time.Second)
		k.heal()
	}
	return nil
}
