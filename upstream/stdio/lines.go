package stdio

import (
	"bytes"
	"cmp"
	"io"
	"sync"

	"github.com/mcpbridge/bridge/internal/transport"
	"github.com/mcpbridge/bridge/jsonrpc"
)

// LineHandler takes what a process writes. Lines come one at a time.
type LineHandler interface {
	// Line takes a line, which it may keep.
	Line(line []byte)
	// TooLarge learns of a line above the limit, which is lost. id is that of the
	// message, "" when it cannot be made out.
	TooLarge(id jsonrpc.ID)
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
	out     chan []byte
	ended   chan struct{}
	once    sync.Once
}

// StartLines starts a process. Options says how; what concerns a second
// start has no meaning here.
func StartLines(opt Options, to LineHandler) (*Lines, error) {
	opt.MaxLine = cmp.Or(opt.MaxLine, DefaultMaxLine)
	opt.Grace = cmp.Or(opt.Grace, DefaultGrace)
	l := &Lines{limit: opt.MaxLine, to: to, out: make(chan []byte, maxOutgoing), ended: make(chan struct{})}
	var err error
	if l.process, err = startProcess(&opt, l); err != nil {
		return nil, opt.startFailure(err)
	}
	return l, nil
}

// Send hands a message over, waiting while the process is slow to read. It
// reports false when the process has ended.
func (l *Lines) Send(msg []byte) bool {
	line := transport.AppendLine(nil, msg)
	select {
	case <-l.ended:
		return false
	default:
	}
	select {
	case l.out <- line:
		return true
	case <-l.ended:
		return false
	}
}

// Close ends the process and waits for that, at most about twice the
// grace period.
func (l *Lines) Close() {
	l.process.stop()
	<-l.process.done
}

func (l *Lines) write(w io.Writer) { writeLines(w, l.out, l.ended) }

func (l *Lines) read(r io.Reader) {
	readLines(r, l.limit, l.to.Line, func(beginning, end []byte) { l.to.TooLarge(responseID(beginning, end)) })
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
