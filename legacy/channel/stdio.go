package channel

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/transport"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/observe"
)

// maxKept is the largest write buffer that a connection keeps between messages.
const maxKept = 64 << 10

// lastAnswers is how long requests may go on when the client has closed its end of
// the connection: it may still read, like a shell that waits for what it piped in.
// Clients that only want to leave give a process two seconds.
const lastAnswers = time.Second

// Once the input has ended, and not all of it was taken:
const (
	lastMove = 10 * time.Second // is how long a write may stand still: the client does not read
	lastTake = 30 * time.Minute // is how long nothing may move while none is under way: it is the server that takes its time
)

// lastLine is how long the client may take for a line once its connection has begun to end.
const lastLine = time.Second

// Serve serves one client over a pair of pipes, one message per line
// (E-31). It returns nil when in ends and what it brought was answered or took too
// long, ctx's error when ctx ends, the write error, or errUnread, when the client no longer
// reads, and errUntaken when the server takes nothing any more. By then every request has ended. The goroutine that reads ends with
// in, which Serve doesn't close: nothing interrupts a read of a standard input. The one
// that writes ends with the write that a client leaves unread.
func Serve(ctx context.Context, in io.Reader, out io.Writer, opt Options, b downstream.Backend) error {
	o := newOutlet(out)
	defer close(o.lines)
	c := New(ctx, opt, b, downstream.Caller{}, observe.Stdio, o.write)
	from := newAhead(in, func() { o.takes.Add(1) })
	go pipes{c}.readLines(transport.NewLineReader(from, int(opt.MaxBody)))
	select {
	case <-c.gone:
	case <-ctx.Done():
	case <-from.ended:
		pipes{c}.awaitTaken(ctx, o)
	}
	select {
	case <-c.gone:
		if c.err == nil {
			pipes{c}.awaitAnswers(ctx)
		}
		o.unread = errors.Is(c.err, errUnread)
		close(o.ending)
		c.Close(ErrDisconnected)
		return c.err
	case <-ctx.Done():
		close(o.ending)
		c.Close(context.Cause(ctx)) // not ErrStopping: it is the client that has a process end
		return ctx.Err()
	}
}

// outlet writes lines on a goroutine of its own, so that whoever waits for a client that
// does not read can give up at the end: nothing interrupts a write of a standard output.
type outlet struct {
	buf    []byte
	lines  chan []byte
	wrote  chan error    // has room for the outcome that nobody waits for any more
	ending chan struct{} // closed when the connection begins to end
	unread bool          // the client has had its time by then; set before ending is closed
	takes  atomic.Uint64 // of the input
	writes atomic.Uint64 // begun, and done: one is under way while it is odd
}

// maxWrite is how much is written at once, in bytes: a client that takes its time is seen to take something.
// It is a page, since a full pipe has no room again before so much was read.
const maxWrite = 4 << 10

// moves is what has moved on both pipes.
type moves struct{ takes, writes uint64 }

func (o *outlet) moves() moves { return moves{o.takes.Load(), o.writes.Load()} }

// writeAll writes a line.
func (o *outlet) writeAll(out io.Writer, line []byte) error {
	for part := range slices.Chunk(line, maxWrite) {
		o.writes.Add(1)
		_, err := out.Write(part)
		o.writes.Add(1)
		if err != nil {
			return err
		}
	}
	return nil
}

func newOutlet(out io.Writer) *outlet {
	o := &outlet{lines: make(chan []byte), wrote: make(chan error, 1), ending: make(chan struct{})}
	go func() {
		for line := range o.lines {
			o.wrote <- o.writeAll(out, line)
		}
	}()
	return o
}

var (
	// errUnread ends the connection of a client that does not read.
	errUnread  = errors.New("the client did not read what it was sent")
	errUntaken = errors.New("the input has ended, and the server did not take all that it brought")
)

// write writes one message, with the channel's lock held. It is called no more after an error.
func (o *outlet) write(msg []byte) error {
	o.buf = transport.AppendLine(o.buf[:0], msg)
	o.lines <- o.buf // nothing is being written
	select {
	case err := <-o.wrote:
		if cap(o.buf) > maxKept {
			o.buf = nil
		}
		return err
	case <-o.ending:
	}
	if o.unread {
		return errUnread
	}
	limit := time.NewTimer(lastLine)
	defer limit.Stop()
	select {
	case err := <-o.wrote:
		return err
	case <-limit.C:
		return errUnread
	}
}

// pipes is a connection over a pair of them. It has no state of its own.
type pipes struct{ *Channel }

// awaitTaken waits until the rest of an input that has ended was taken. Whoever takes it may wait for
// the client to read, and the client does not any more, or for the server, which may be at work.
func (c pipes) awaitTaken(ctx context.Context, o *outlet) {
	look := time.NewTicker(lastMove)
	defer look.Stop()
	before, moved := o.moves(), time.Now()
	for {
		select {
		case <-c.gone:
			return
		case <-ctx.Done():
			return
		case <-look.C:
		}
		switch now := o.moves(); {
		case now != before:
			before, moved = now, time.Now()
		case now.writes%2 == 1: // as it was the last time
			c.HangUp(errUnread)
			return
		case time.Since(moved) >= lastTake:
			c.HangUp(errUntaken)
			return
		}
	}
}

// awaitAnswers waits until nothing is under way, but not for ever. Nothing more is
// received.
func (c pipes) awaitAnswers(ctx context.Context) {
	answered := make(chan struct{})
	go func() { c.work.Wait(); close(answered) }() // at the latest after close
	limit := time.NewTimer(lastAnswers)
	defer limit.Stop()
	select {
	case <-answered:
	case <-ctx.Done():
	case <-limit.C:
		c.log.Warn().Dur("after", lastAnswers).Msg("the input has ended; requests that are still under way are cancelled")
	}
}

func (c pipes) readLines(lines *transport.LineReader) {
	for {
		line, err := lines.Read()
		switch {
		case err == nil:
			c.receive(line)
		case errors.Is(err, transport.ErrTooLarge):
			c.rejectLarge(line, lines.Tail())
		case errors.Is(err, io.EOF):
			c.HangUp(nil)
			return
		default:
			c.HangUp(err)
			return
		}
	}
}

// rejectLarge answers a message above the limit, of which only the beginning and
// the end were kept. The id stands in one of them.
func (c pipes) rejectLarge(beginning, end []byte) {
	refusal := fault.Request(message.TooLarge(c.opt.MaxBody))
	if c.rejectEach(beginning, refusal) {
		return
	}
	msg, _ := jsonrpc.Parse(beginning)
	c.reject(cmp.Or(msg.ID, jsonrpc.TrailingID(end)), refusal)
}
