package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/mcpbridge/bridge/observe"
)

// Limits of one recording, in bytes.
const (
	MaxFile   = 256 << 20 // on a disk
	MaxMemory = 16 << 20  // without a directory
	maxQueue  = 8 << 20   // what waits to be written; what comes on top is left out and counted
)

// Options says where recordings go.
type Options struct {
	// Dir takes the files; "": recordings stay in memory until the next one.
	Dir string
	// Bridge is the version of the program.
	Bridge string
	// Payloads is what the head says of them.
	Payloads bool
	// Ended is told that a recording is over: why is nil when somebody stopped it. It is
	// called from a goroutine of the recorder.
	Ended func(State, error)
}

// State is a recording as it stands, or as the last one ended.
type State struct {
	On    bool
	Began time.Time // zero: there was none
	Ended time.Time
	File  string // "": it is in memory
	Lines int
	Bytes int // written or about to be
	Lost  int // messages that came faster than they could be written, or had to be given up before it was known that they are wanted
	// Filter words what is recorded; "": everything.
	Filter string
	Error  string
}

// Recorder makes one recording at a time. Its methods are safe for concurrent use.
type Recorder struct {
	opt Options

	mu      sync.Mutex
	state   State
	sieve   *sieve // nil: everything is wanted
	out     output
	pending []byte
	limit   int
	wake    chan struct{} // of the recording; has room for one
	stop    chan struct{} // closed to end the recording
	done    chan struct{} // closed when it has ended
}

// output takes what is recorded, and gives it back.
type output interface {
	io.WriteCloser
	reopen() (io.ReadCloser, error)
}

// New returns a recorder that does not record yet.
func New(opt Options) *Recorder { return &Recorder{opt: opt} }

// ErrRunning says that there is a recording already.
var ErrRunning = errors.New("a recording is under way")

// Start begins a recording of what a filter wants.
func (r *Recorder) Start(f Filter) error {
	r.settle()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state.On {
		return ErrRunning
	}
	began := time.Now()
	head, err := Append(nil, Head{Format: Format, Version: Version, Bridge: r.opt.Bridge, Began: began.UTC(), Payloads: r.opt.Payloads, Filter: f.String()})
	if err != nil {
		return err // impossible: a head can be written
	}
	out, name, err := r.create(began)
	if err != nil {
		return fmt.Errorf("no recording can be made: %w", err)
	}
	r.state = State{On: true, Began: began, File: name, Bytes: len(head), Filter: f.String()}
	if r.sieve = nil; f != (Filter{}) {
		r.sieve = newSieve(f)
	}
	r.out, r.pending = out, head
	r.wake, r.stop, r.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	r.wake <- struct{}{}
	go r.write(out, r.wake, r.stop, r.done)
	return nil
}

// settle waits until a recording that is over is written.
func (r *Recorder) settle() {
	r.mu.Lock()
	on, done := r.state.On, r.done
	r.mu.Unlock()
	if !on && done != nil {
		<-done
	}
}

func (r *Recorder) create(began time.Time) (output, string, error) {
	if r.opt.Dir == "" {
		r.limit = MaxMemory
		return &memory{}, "", nil
	}
	r.limit = MaxFile
	name := filepath.Join(r.opt.Dir, fmt.Sprintf("bridge-%s-%d.jsonl", began.UTC().Format("20060102T150405.000"), os.Getpid()))
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("the directory %s does not exist", r.opt.Dir)
	}
	if err != nil {
		return nil, "", err
	}
	return &file{f}, name, nil
}

// Take records an event. It never waits: what cannot be kept is counted.
func (r *Recorder) Take(e *observe.Event) {
	l := LineOf(e)
	line, err := Append(nil, &l)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !r.state.On:
	case err != nil:
		r.state.Lost++
	case r.sieve == nil:
		r.keepLocked(line)
	default:
		for _, wanted := range r.sieve.take(e, line) {
			r.keepLocked(wanted)
		}
		r.state.Lost += r.sieve.dropped
		r.sieve.dropped = 0
	}
}

// keepLocked has a line written.
func (r *Recorder) keepLocked(line []byte) {
	switch {
	case !r.state.On:
		return
	case len(r.pending)+len(line) > maxQueue:
		r.state.Lost++
		return
	case r.state.Bytes+len(line) > r.limit:
		r.endLocked(fmt.Errorf("it has reached %d MiB", r.limit>>20))
		return
	}
	r.pending = append(r.pending, line...)
	r.state.Lines++
	r.state.Bytes += len(line)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// endLocked ends the recording after what is pending.
func (r *Recorder) endLocked(why error) {
	if !r.state.On {
		return
	}
	r.state.On, r.state.Ended = false, time.Now()
	if why != nil {
		r.state.Error = why.Error()
	}
	close(r.stop)
}

// write writes what is pending until the recording ends.
func (r *Recorder) write(out output, wake, stop, done chan struct{}) {
	defer close(done)
	var failed error
	for over := false; !over && failed == nil; {
		select {
		case <-wake:
		case <-stop:
			over = true
		}
		_, failed = out.Write(r.pendingLines())
	}
	failed = errors.Join(failed, out.Close())
	r.mu.Lock()
	if failed != nil {
		r.state.Error = failed.Error()
		r.endLocked(failed)
	}
	state := r.state
	r.mu.Unlock()
	if r.opt.Ended != nil {
		r.opt.Ended(state, failure(state))
	}
}

func failure(s State) error {
	if s.Error == "" {
		return nil
	}
	return errors.New(s.Error)
}

func (r *Recorder) pendingLines() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.pending
	r.pending = nil
	return lines
}

// Stop ends the recording, and returns when it is written.
func (r *Recorder) Stop() {
	r.mu.Lock()
	r.endLocked(nil)
	r.mu.Unlock()
	r.settle()
}

// State returns how the recording stands.
func (r *Recorder) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// ErrNone says that nothing was recorded.
var ErrNone = errors.New("there is no recording")

// Open returns the recording so far, or the last one.
func (r *Recorder) Open() (io.ReadCloser, error) {
	r.mu.Lock()
	out := r.out
	r.mu.Unlock()
	if out == nil {
		return nil, ErrNone
	}
	return out.reopen()
}

// file is a recording on a disk.
type file struct{ *os.File }

func (f *file) reopen() (io.ReadCloser, error) { return os.Open(f.Name()) }

// memory is a recording in memory.
type memory struct {
	mu   sync.Mutex
	text []byte
}

func (m *memory) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.text = append(m.text, p...)
	return len(p), nil
}

func (m *memory) Close() error { return nil }

func (m *memory) reopen() (io.ReadCloser, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return io.NopCloser(bytes.NewReader(m.text)), nil // what is written later lies behind it
}
