package stdio

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/mcpbridge/bridge/internal/budget"
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
	account *budget.Account
	once    sync.Once
	*outlet
}

// StartLines starts a process. Options says how; what concerns a second
// start has no meaning here. Its account is charged with what waits for the process, and with a
// line while it comes and while it is handled.
func StartLines(opt Options, to LineHandler) (*Lines, error) {
	opt.MaxLine = cmp.Or(opt.MaxLine, DefaultMaxLine)
	opt.Grace = cmp.Or(opt.Grace, DefaultGrace)
	l := &Lines{limit: opt.MaxLine, to: to, account: opt.Account, outlet: newOutlet()}
	var err error
	if l.process, err = startProcess(&opt, l); err != nil {
		return nil, opt.startFailure(err)
	}
	return l, nil
}

// Send hands a message over, waiting while the process is slow to read. The error is one of budget
// when there is no memory for it to wait in, or ErrEnded when the process has ended, or reads no
// more: a handler that sends is what the rest of its lines waits for, and the end for these.
func (l *Lines) Send(msg []byte) error {
	return l.put(context.Background(), l.account, transport.AppendLine(nil, msg), nil, nil)
}

// Close ends the process and waits for that, at most about twice the
// grace period.
func (l *Lines) Close() {
	l.process.stop()
	<-l.process.done
}

func (l *Lines) write(w io.Writer) {
	defer l.shut()
	l.outlet.write(w)
}

func (l *Lines) read(r io.Reader) {
	held := budget.On(l.account)
	defer held.Release()
	lines := transport.NewLineReader(r, l.limit)
	lines.Tell(&held)
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
		l.shut()
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
