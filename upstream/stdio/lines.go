package stdio

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"sync"

	"github.com/mcpbridge/bridge/internal/transport"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/upstream"
)

// LineHandler takes what a process writes. Lines come one at a time.
type LineHandler interface {
	// Line takes a line, which it may keep.
	Line(line []byte)
	// TooLarge learns of a line above the limit, which is lost. id is that of the
	// message, "" when it cannot be made out.
	TooLarge(id jsonrpc.ID)
	// Refused learns of a line that was refused for this reason, which is lost like those
	// above the limit.
	Refused(id jsonrpc.ID, why error)
	// Ended is called once, when nothing more is read. A last line may be under way
	// then.
	Ended()
}

// Lines is a process that is spoken with in lines, which nobody here reads: a
// server of another era than the client of this package.
type Lines struct {
	process *process
	limit   int
	to      LineHandler
	held    upstream.Held
	out     chan []byte
	deaf    chan struct{} // closed when nobody takes what out brings any more
	ended   chan struct{}
	once    sync.Once
}

// StartLines starts a process. Options says how; what concerns a second
// start has no meaning here. held, which may be nil, is told of lines while they come and while
// they are handled, and may refuse them.
func StartLines(opt Options, to LineHandler, held upstream.Held) (*Lines, error) {
	opt.MaxLine = cmp.Or(opt.MaxLine, DefaultMaxLine)
	opt.Grace = cmp.Or(opt.Grace, DefaultGrace)
	l := &Lines{limit: opt.MaxLine, to: to, held: held, out: make(chan []byte, maxOutgoing), deaf: make(chan struct{}), ended: make(chan struct{})}
	var err error
	if l.process, err = startProcess(&opt, l); err != nil {
		return nil, opt.startFailure(err)
	}
	return l, nil
}

// Send hands a message over, waiting while the process is slow to read. It
// reports false when the process has ended, or reads no more: a handler that sends is
// what the rest of its lines waits for, and the end for these.
func (l *Lines) Send(msg []byte) bool {
	line := transport.AppendLine(nil, msg)
	select {
	case <-l.ended:
		return false
	case <-l.deaf:
		return false
	default:
	}
	select {
	case l.out <- line:
		return true
	case <-l.ended:
		return false
	case <-l.deaf:
		return false
	}
}

// Close ends the process and waits for that, at most about twice the
// grace period.
func (l *Lines) Close() {
	l.process.stop()
	<-l.process.done
}

func (l *Lines) write(w io.Writer) {
	defer close(l.deaf)
	writeLines(w, l.out, l.ended)
}

func (l *Lines) read(r io.Reader) {
	lines := transport.NewLineReader(r, l.limit)
	lines.Tell(l.held)
	readLines(lines, l.to.Line, func(beginning, end []byte, why error) {
		if id := responseID(beginning, end); errors.Is(why, transport.ErrTooLarge) {
			l.to.TooLarge(id)
		} else {
			l.to.Refused(id, why)
		}
	})
}

func (l *Lines) end() {
	l.once.Do(func() {
		close(l.ended)
		l.to.Ended()
	})
}

// responseID makes the id of a response out from its beginning and its end. The
// server's own requests have ids of their own, which must not be mixed up.
func responseID(beginning, end []byte) jsonrpc.ID {
	if bytes.Contains(beginning[:min(len(beginning), 512)], []byte(`"method"`)) {
		return ""
	}
	msg, _ := jsonrpc.Parse(beginning)
	return cmp.Or(msg.ID, jsonrpc.TrailingID(end))
}
