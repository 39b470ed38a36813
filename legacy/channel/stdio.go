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

// Serve serves one client over a pair of pipes, one message per line
// (E-31). It returns nil when in ends and what it brought was answered or took too
// long, ctx's error when ctx ends, and the write error when the client no longer
// reads. By then every request has ended. The goroutine that reads ends with
// in, which Serve doesn't close: nothing interrupts a read of a standard input.
func Serve(ctx context.Context, in io.Reader, out io.Writer, opt Options, b downstream.Backend) error {
	var buf []byte
	c := New(ctx, opt, b, downstream.Caller{}, observe.Stdio, func(msg []byte) error {
		buf = transport.AppendLine(buf[:0], msg)
		_, err := out.Write(buf)
		if cap(buf) > maxKept {
			buf = nil
		}
		return err
	})
	go pipes{c}.readLines(transport.NewLineReader(in, int(opt.MaxBody)))
	select {
	case <-c.gone:
		if c.err == nil {
			pipes{c}.awaitAnswers(ctx)
		}
		c.Close(ErrDisconnected)
		return c.err
	case <-ctx.Done():
		c.Close(context.Cause(ctx)) // not ErrStopping: it is the client that has a process end
		return ctx.Err()
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
	msg, _ := jsonrpc.Parse(beginning)
	c.reject(cmp.Or(msg.ID, jsonrpc.TrailingID(end)), fault.Request(message.TooLarge(c.opt.MaxBody)))
}
