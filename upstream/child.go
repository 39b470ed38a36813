package upstream

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// child is one run of a server process that answers requests.
type child struct {
	*pipe
	*process
}

// startChild starts the server.
func startChild(opt *StdioOptions) (*child, error) {
	p := newPipe(opt.MaxLine, opt.Log)
	run, err := startProcess(opt, p)
	if err != nil {
		return nil, err
	}
	return &child{p, run}, nil
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
	cmd    *exec.Cmd
	stdin  *os.File
	grace  time.Duration
	begun  time.Time
	quit   chan struct{} // closed to ask for a shutdown
	asked  sync.Once
	deaf   chan struct{} // closed when its input takes no more
	exited chan struct{} // the process is gone
	done   chan struct{}
}

func startProcess(opt *StdioOptions, talk speech) (*process, error) {
	cmd := exec.Command(opt.Command, opt.Args...)
	cmd.Dir = opt.Dir
	cmd.Env = append(os.Environ(), opt.Env...)
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
	if err := cmd.Start(); err != nil {
		shut(0, 1, 2, 3, 4, 5)
		return nil, err
	}
	shut(0, 3, 5)
	p := &process{speech: talk, log: opt.Log, cmd: cmd, stdin: files[1], grace: opt.Grace, begun: time.Now(),
		quit: make(chan struct{}), deaf: make(chan struct{}), exited: make(chan struct{}), done: make(chan struct{})}
	p.run(files[2], files[4])
	return p, nil
}

// drainGrace is how long output may still be read after the process is gone;
// processes that it left behind may hold the pipes open.
const drainGrace = 500 * time.Millisecond

// run starts its goroutines.
func (p *process) run(stdout, stderr *os.File) {
	var readers, all sync.WaitGroup
	read := make(chan struct{})
	readers.Go(func() { p.speech.read(stdout); close(read) })
	readers.Go(func() { relayStderr(stderr, p.log) })
	all.Go(func() { p.speech.write(p.stdin); close(p.deaf) })
	all.Go(func() { p.reap(stdout, stderr) })
	all.Go(func() { p.shutdown(read) })
	go func() {
		readers.Wait()
		all.Wait()
		_ = stdout.Close()
		_ = stderr.Close()
		close(p.done)
	}()
}

// reap waits for the process, then for the rest of its output.
func (p *process) reap(stdout, stderr *os.File) {
	err := p.cmd.Wait()
	close(p.exited)
	deadline := time.Now().Add(drainGrace)
	_ = stdout.SetReadDeadline(deadline)
	_ = stderr.SetReadDeadline(deadline)
	event := p.log.Info()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		event = p.log.Warn().Str("status", exit.String())
	}
	event.Dur("ran", time.Since(p.begun)).Msg("upstream process ended")
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
		<-read // answers that were written before the end count
	}
	p.speech.end()
	_ = p.stdin.Close()
	for _, harder := range []func(*exec.Cmd){terminate, kill} {
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
