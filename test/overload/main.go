// Command overload floods the bridge with greedy clients of one principal, in every way
// in which a client can make it hold something, while a few behaving sessions make
// their calls, and tells how fair it was. With -anonymous nobody has credentials, and
// the greedy ones have an address in common; with -made-up each of them has a token of its
// own besides, at a server that looks at none; with -store waiting calls are kept in a file.
//
//	go run ./test/overload -calls 200
//
// It exits with 1 when a behaving session was refused anything, or the process took more
// memory than limits.memory says. Pages of the store's file do not count: the system takes them back when it
// needs them, and limits.memory does not bound them. Times are shown and decide nothing.
package main

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/test/program"
)

// settings of a run.
type settings struct {
	calls, behaving, greedy int
	memory                  int64
	binary, flood           string
	anonymous, store        bool
	madeUp                  bool
}

func main() {
	var s settings
	flag.IntVar(&s.calls, "calls", 200, "how many calls each behaving session makes in each flood")
	flag.IntVar(&s.behaving, "behaving", 8, "how many sessions behave")
	flag.IntVar(&s.greedy, "greedy", 48, "how many clients are greedy at a time")
	flag.Int64Var(&s.memory, "memory", 192, "limits.memory in MiB")
	flag.StringVar(&s.binary, "bridge", "", "the bridge's binary; empty: build it")
	flag.StringVar(&s.flood, "flood", "", "only the floods whose names contain this")
	flag.BoolVar(&s.anonymous, "anonymous", false, "clients are told apart by their addresses only")
	flag.BoolVar(&s.madeUp, "made-up", false, "the same, and each greedy client has a token that it made up")
	flag.BoolVar(&s.store, "store", false, "sessions and waiting calls are kept in a file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	fair, err := run(ctx, &s, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(2)
	}
	if !fair {
		os.Exit(1)
	}
}

// run reports whether all behaving sessions were served, within the memory. Each flood
// has a bridge of its own.
func run(ctx context.Context, s *settings, out io.Writer) (fair bool, err error) {
	servers := map[bool]*server{} // by whether they are of the clients' own era
	for _, legacy := range []bool{false, true} {
		up, err := startServer(!s.anonymous && !s.madeUp, legacy)
		if err != nil {
			return false, err
		}
		defer up.stop()
		servers[legacy] = up
	}
	fair = true
	for i := range floods {
		if !strings.Contains(floods[i].name, s.flood) {
			continue
		}
		ok, err := s.suffer(ctx, &floods[i], servers[floods[i].legacy], out)
		if err != nil {
			return false, err
		}
		fair = fair && ok
	}
	return fair, ctx.Err()
}

// suffer has behaving sessions make their calls, alone and during a flood.
func (s *settings) suffer(ctx context.Context, f *flood, up *server, out io.Writer) (fair bool, err error) {
	options, clean, err := s.options(f)
	if err != nil {
		return false, err
	}
	defer clean()
	b, err := program.Start(ctx, s.binary, up.url(), options...)
	if err != nil {
		return false, err
	}
	defer b.Stop()
	own := watch(b)
	defer own()
	behaving := make([]*client, s.behaving)
	for i := range behaving {
		behaving[i] = s.client(b.URL, i+1, nil)
		if got := behaving[i].open(ctx, 1); got != "OK" {
			return false, fmt.Errorf("a session cannot be opened: %s", got)
		}
	}
	if up.guarded { // as every such server has soon: from then on it vouches for whom it takes
		stranger := newClient(b.URL, http.Header{"Authorization": {"Bearer stranger"}}, nil)
		if got := stranger.call(ctx, "echo", 2, 100); got != http.StatusText(http.StatusUnauthorized) {
			return false, fmt.Errorf("a stranger's token is refused with %s", got)
		}
	}
	alone, _ := serve(ctx, behaving, s.calls)
	greedy := newTally()
	flooding, stop := context.WithCancel(ctx)
	var flood sync.WaitGroup
	flood.Go(func() { f.each(flooding, s.greedy, func() *client { return s.client(b.URL, 0, greedy) }) })
	for greedy.sum() < s.greedy && ctx.Err() == nil { // it has begun
		time.Sleep(time.Millisecond)
	}
	took, ok := serve(ctx, behaving, s.calls)
	stop()
	flood.Wait()
	fmt.Fprintf(out, "%s\n  behaving: %s, p50 ×%.1f, p99 ×%.1f of those alone\n  greedy:   %s\n",
		f.name, ok, took.at(.5)/alone.at(.5), took.at(.99)/alone.at(.99), greedy)
	return s.within(b, own(), out) && ok.all(), nil
}

// options are the flags of the bridge that suffers a flood. clean removes what it kept.
func (s *settings) options(f *flood) (flags []string, clean func(), err error) {
	flags, clean = append([]string{"--limits.memory", fmt.Sprintf("%dMiB", s.memory)}, f.settings...), func() {}
	if s.anonymous || s.madeUp {
		flags = append(flags, "--trusted-proxies", "127.0.0.1")
	}
	if s.store {
		dir, err := os.MkdirTemp("", "overload")
		if err != nil {
			return nil, nil, err
		}
		flags, clean = append(flags, "--store.url", "file:"+filepath.Join(dir, "store")), func() { _ = os.RemoveAll(dir) }
	}
	return flags, clean, nil
}

// client returns the client of this number: 0 is greedy, however many there are of it.
func (s *settings) client(url string, number int, t *tally) *client {
	token := fmt.Sprint("client", number)
	if !s.anonymous && !s.madeUp {
		return newClient(url, http.Header{"Authorization": {"Bearer " + token}}, t)
	}
	who := http.Header{"X-Forwarded-For": {fmt.Sprintf("192.0.2.%d", number)}}
	if number == 0 && s.madeUp {
		token = rand.Text()
	}
	if s.madeUp {
		who.Set("Authorization", "Bearer "+token)
	}
	return newClient(url, who, t)
}

// lookEvery is how often the process's own memory is looked at: what the system notes as the most is with pages of files.
const lookEvery = 10 * time.Millisecond

// watch looks at the process's own memory until most is called, which returns the most that was seen, and may be called again.
func watch(b *program.Bridge) (most func() int64) {
	seen, stop := int64(0), make(chan struct{})
	look := func() {
		if own, _, err := b.Kinds(); err == nil {
			seen = max(seen, own)
		}
	}
	var looking sync.WaitGroup
	looking.Go(func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			look()
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	})
	return sync.OnceValue(func() int64 {
		close(stop)
		looking.Wait()
		return seen
	})
}

// within reports whether the process kept to its memory. Where a store's file is mapped into it only its own counts, of which so much
// was seen at most.
func (s *settings) within(b *program.Bridge, own int64, out io.Writer) bool {
	_, most, err := b.Resident()
	if err != nil {
		fmt.Fprintln(out, "  memory:   not known on this system")
		return true
	}
	counts, what := most, "all that was resident"
	if s.store {
		counts, what = own, fmt.Sprintf("the process's own, seen every %v; with pages of files %d", lookEvery, most/mib)
	}
	fmt.Fprintf(out, "  memory:   at most %d MiB of %d (%s)\n", counts/mib, s.memory, what)
	return counts <= s.memory*mib
}

// served is how many calls there were, how many were answered, and what the others got.
type served struct {
	ok, of int
	others *tally
}

func (s served) all() bool { return s.ok == s.of }

func (s served) String() string {
	text := fmt.Sprintf("%d of %d served", s.ok, s.of)
	if !s.all() {
		text += " (" + s.others.String() + ")"
	}
	return text
}

// times are how long calls took, in order, in seconds.
type times []float64

func (t times) at(share float64) float64 { return t[int(float64(len(t)-1)*share)] }

// serve has each session make its calls, one after the other, and returns how long they
// took.
func serve(ctx context.Context, sessions []*client, calls int) (times, served) {
	var mu sync.Mutex
	var took times
	s := served{of: len(sessions) * calls, others: newTally()}
	var all sync.WaitGroup
	for _, c := range sessions {
		all.Go(func() {
			for range calls {
				began := time.Now()
				got := c.call(ctx, "echo", 2, 100)
				mu.Lock()
				if took = append(took, time.Since(began).Seconds()); got == "OK" {
					s.ok++
				} else {
					s.others.note(got)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	slices.Sort(took)
	return took, s
}

// String lists the answers.
func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := ""
	for _, what := range slices.Sorted(maps.Keys(t.answers)) {
		text += fmt.Sprintf("%d %s, ", t.answers[what], what)
	}
	return text[:max(len(text)-2, 0)]
}
