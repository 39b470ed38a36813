package stdio

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// child is one run of a server process that answers requests.
type child struct {
	*pipe
	*process
	fallback  upstream.Fallback
	run       uint64                 // counts those of its client
	served    atomic.Bool            // it has answered something, so it did not crash at its start
	modern    atomic.Bool            // it has answered server/discover
	legacy    atomic.Bool            // it has refused that, as servers of that era do: nothing else is for it
	offers    atomic.Pointer[[]byte] // the versions that it speaks, a JSON array; nil: it has not said so
	ours      atomic.Bool            // the bridge ends it for a reason of its own: nobody's request is to blame
	ready     chan struct{}          // closed when it may be given requests; nil: from the start
	handshake bool                   // it is asked initialize first
	offered   []string               // what it has offered as a legacy server; set before ready is closed
	judged    time.Time              // when it was judged by that
	silent    atomic.Bool            // it has left server/discover unanswered for longer than who asked could wait
	// left are those that have left something with it that nobody waits for: notifications, and
	// requests that were given up. Guarded by the client's lock.
	left  map[suspect]struct{}
	asked atomic.Int64 // when it was asked again what it is, in Unix nanoseconds
}

// maxLeft bounds who is remembered to have left something with a child.
const maxLeft = 256

// startChild starts the server.
func startChild(opt *Options) (*child, error) {
	p := newPipe(opt.MaxLine, opt.Account, opt.Log)
	p.sole = opt.Sole
	run, err := startProcess(opt, p)
	if err != nil {
		return nil, err
	}
	return &child{pipe: p, process: run, fallback: opt.Fallback}, nil
}

// alive reports whether the child takes requests.
func (c *child) alive() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// takes reports whether the child may be given requests, as far as its greeting goes.
func (c *child) takes() bool {
	if c.ready == nil {
		return true
	}
	select {
	case <-c.ready:
		return true
	default:
		return false
	}
}

// introduced learns what a child is from its answer to server/discover, as far as that shows it: it may have failed, or say
// yes to whatever it is asked.
func (c *child) introduced(ans *upstream.Answer) {
	c.modern.Store(ans.Error == nil)
	c.silent.Store(false)
	said := upstream.Answer{Error: ans.Error}
	said.Settle(c.fallback, 0)
	offers := negotiate.Named(ans.Result, said.Error)
	switch {
	case rawjson.KindOf(offers) == rawjson.Array && len(offers) > len("[]") && len(offers) <= maxOffers:
		offers = bytes.Clone(offers)
		c.offers.Store(&offers)
		if c.fallback != nil {
			c.fallback.Offered(offers)
		}
		c.legacy.Store(upstream.Choose(c.fallback, offers, string(mcp.V20260728)) == "")
	case said.Error != nil && negotiate.LegacyRefusal(said.Error.Code):
		c.legacy.Store(true)
	}
}

// maxOffers bounds what is kept of a child's list of versions, in bytes.
const maxOffers = 4 << 10

// speaks reports whether the child has said that it speaks a version of this era.
func (c *child) speaks() bool { return c.offers.Load() != nil && !c.legacy.Load() }

// declares returns params that declare a version which the child speaks, where it has said which: it may be another one than
// the child before, of which the session knows.
func (c *child) declares(params []byte) []byte {
	offers := c.offers.Load()
	if offers == nil {
		return params
	}
	version := upstream.Declared(params)
	if version == "" || upstream.Offers(*offers, version) {
		return params
	}
	if other := upstream.Choose(c.fallback, *offers, string(mcp.V20260728)); other != "" {
		return upstream.Redeclare(params, other)
	}
	return params
}

// foreign returns why a child that came in the place of a modern one gets nothing that was meant for that. It
// might execute it: many servers do so without a session, and without a look at what a person decided. It is asked now and then
// whether that is still so: it may not have been ready.
func (c *child) foreign() error {
	if !c.legacy.Load() {
		return nil
	}
	now, asked := time.Now().UnixNano(), c.asked.Load()
	if now-asked >= int64(askAgain) && c.asked.CompareAndSwap(asked, now) {
		ctx, cancel := context.WithTimeout(context.Background(), shortly)
		defer cancel()
		if ans, err := c.do(ctx, ownDiscover(), sink{}); err == nil {
			c.introduced(ans)
		}
	}
	if !c.legacy.Load() {
		return nil
	}
	return notModern()
}

// askAgain lies at least between two such questions, shortly is how long each may take.
const (
	askAgain = time.Second
	shortly  = 5 * time.Second
)

func notModern() *upstream.Failure {
	return &upstream.Failure{Cause: upstream.NotModern, Detail: "the command was started again, and does not speak MCP 2026-07-28 any more; the request was not given to it"}
}

// speech is what goes over the pipes of a process.
type speech interface {
	write(w io.Writer) // until end, or until the process reads no more
	read(r io.Reader)  // until the process writes no more
	end()              // nothing more can be read; may be called twice
}

// process is one run of a server process. Its goroutines, for input, output,
// stderr and the end, are all gone when done is closed.
type process struct {
	speech speech
	log    zerolog.Logger
	tail   *Tail
	cmd    *exec.Cmd
	guard  *guardian // nil: none
	stdin  *os.File
	grace  time.Duration
	begun  time.Time
	quit   chan struct{} // closed to ask for a shutdown
	asked  sync.Once
	deaf   chan struct{} // closed when its input takes no more
	exited chan struct{} // the process is gone
	done   chan struct{}
}

func startProcess(opt *Options, talk speech) (*process, error) {
	cmd := exec.Command(opt.Command, opt.Args...)
	cmd.Dir = opt.Dir
	cmd.Env = append(opt.environment(), opt.Env...)
	ownGroup(cmd)
	var files [6]*os.File // stdin, stdout, stderr: child's end, our end
	shut := func(which ...int) {
		for _, i := range which {
			if files[i] != nil {
				_ = files[i].Close()
			}
		}
	}
	var err error
	for i := 0; i < 6 && err == nil; i += 2 {
		files[i], files[i+1], err = os.Pipe() // read end, write end
	}
	if err != nil {
		shut(0, 1, 2, 3, 4, 5)
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[3], files[5]
	ended, err := launch(cmd)
	if err != nil {
		shut(0, 1, 2, 3, 4, 5)
		return nil, err
	}
	shut(0, 3, 5)
	p := &process{speech: talk, log: opt.Log, tail: opt.Tail, cmd: cmd, guard: guard(cmd), stdin: files[1], grace: opt.Grace, begun: time.Now(),
		quit: make(chan struct{}), deaf: make(chan struct{}), exited: make(chan struct{}), done: make(chan struct{})}
	p.run(files[2], files[4], ended)
	return p, nil
}

// launch starts a process and tells how it ended. On Linux it ends with the
// thread that started it, so that thread waits for it: the runtime could end any
// other at any time, but ends this one only with the bridge.
func launch(cmd *exec.Cmd) (ended <-chan error, err error) {
	begun, over := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		begun <- err
		if err == nil {
			started.add(cmd.Process.Pid)
			defer started.remove(cmd.Process.Pid)
			over <- cmd.Wait()
		}
	}()
	return over, <-begun
}

// drainGrace is how long output may still be read after the process is gone;
// processes that it left behind may hold the pipes open.
const drainGrace = 500 * time.Millisecond

// run starts its goroutines.
func (p *process) run(stdout, stderr *os.File, ended <-chan error) {
	var readers, all sync.WaitGroup
	read := make(chan struct{})
	readers.Go(func() { p.speech.read(stdout); close(read) })
	readers.Go(func() { relayStderr(stderr, stderrLog{log: p.log, tail: p.tail, pid: p.cmd.Process.Pid}) })
	all.Go(func() { p.speech.write(p.stdin); close(p.deaf) })
	all.Go(func() { p.reap(stdout, stderr, <-ended) })
	all.Go(func() { p.shutdown(read) })
	go func() {
		readers.Wait()
		all.Wait()
		_ = stdout.Close()
		_ = stderr.Close()
		close(p.done)
	}()
}

// reap takes leave of a process that is gone: of the rest of its output, and of
// what it left behind.
func (p *process) reap(stdout, stderr *os.File, err error) {
	close(p.exited)
	deadline := time.Now().Add(drainGrace)
	_ = stdout.SetReadDeadline(deadline)
	_ = stderr.SetReadDeadline(deadline)
	event := p.log.Info()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		event = p.log.Warn().Str("status", exit.String())
	}
	event.Dur("ran", time.Since(p.begun)).Msg("upstream process ended")
	p.guard.dismiss()
	p.endGroup(deadline)
}

// endGroup ends the processes that a process left behind in its group: gently,
// and at the deadline for good.
func (p *process) endGroup(deadline time.Time) {
	if !terminate(p.cmd) {
		return // there are none
	}
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for now := range look.C {
		if !groupLives(p.cmd) {
			return
		}
		if now.After(deadline) {
			kill(p.cmd)
			p.log.Warn().Msg("the upstream process left others behind, which did not end when asked to")
			return
		}
	}
}

// shutdown ends the process when that is asked for or when it closed its
// output: stdin is closed, then SIGTERM, then SIGKILL. It ends the pipe
// once nothing more can be read.
func (p *process) shutdown(read <-chan struct{}) {
	select {
	case <-p.quit:
	case <-read:
	case <-p.deaf:
		p.await(read, p.grace) // a process that is ending may still answer
	case <-p.exited:
		select {
		case <-read: // answers that were written before the end count
		case <-p.quit: // but for nobody who has left
		}
	}
	p.speech.end()
	_ = p.stdin.Close()
	for _, harder := range []func(*exec.Cmd) bool{terminate, kill} {
		if p.await(p.exited, p.grace) {
			return
		}
		harder(p.cmd)
	}
	<-p.exited
}

// await waits for ch to be closed, for limit at most, and reports whether it was.
func (p *process) await(ch <-chan struct{}, limit time.Duration) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-ch:
		return true
	case <-t.C:
		return false
	}
}

// stop asks for a shutdown and does not wait for it.
func (p *process) stop() { p.asked.Do(func() { close(p.quit) }) }
