package channel

import (
	"cmp"
	"context"
	"errors"
	"io"
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

// lastLine is how long the client may take for a line once its connection has begun to end.
const lastLine = time.Second

// Serve serves one client over a pair of pipes, one message per line
// (E-31). It returns nil when in ends and what it brought was answered or took too
// long, ctx's error when ctx ends, and the write error when the client no longer
// reads. By then every request has ended. The goroutine that reads ends with
// in, which Serve doesn't close: nothing interrupts a read of a standard input. The one
// that writes ends with the write that a client leaves unread.
func Serve(ctx context.Context, in io.Reader, out io.Writer, opt Options, b downstream.Backend) error {
	o := newOutlet(out)
	defer close(o.lines)
	c := New(ctx, opt, b, downstream.Caller{}, observe.Stdio, o.write)
	go pipes{c}.readLines(transport.NewLineReader(in, int(opt.MaxBody)))
	select {
	case <-c.gone:
		if c.err == nil {
			pipes{c}.awaitAnswers(ctx)
		}
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
}

func newOutlet(out io.Writer) *outlet {
	o := &outlet{lines: make(chan []byte), wrote: make(chan error, 1), ending: make(chan struct{})}
	go func() {
		for line := range o.lines {
			_, err := out.Write(line)
			o.wrote <- err
		}
	}()
	return o
}

// errUnread ends the connection of a client that does not read.
var errUnread = errors.New("the client did not read what it was sent")

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
