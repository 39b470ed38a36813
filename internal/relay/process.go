package relay

import (
	"errors"
	"fmt"
	"sync"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/upstream/stdio"
)

// Places bounds how many processes serve one session each. The zero value has
// none.
type Places chan struct{}

// Take takes a place; free gives it back.
func (p Places) Take() (free func(), err error) {
	select {
	case p <- struct{}{}:
		return sync.OnceFunc(func() { <-p }), nil
	default:
		return nil, fault.Internal(fmt.Sprintf("all %d processes of this server are in use (limits.children); try again later", cap(p)),
			fault.Reason("limit"), fault.Limit("limits.children"))
	}
}

// Process is a Server that is a command: a legacy server over stdio has one
// client, so each client gets a process of its own.
type Process struct {
	Options stdio.Options
	Places  Places
}

// Connect implements Server.
func (p *Process) Connect(_ downstream.Caller, inbox Inbox) (Line, error) {
	free, err := p.Places.Take()
	if err != nil {
		return nil, err
	}
	lines, err := stdio.StartLines(p.Options, hearing{inbox})
	if err != nil {
		free()
		return nil, failed(err.Error())
	}
	return &processLine{lines, free}, nil
}

// hearing hands what a process writes to an inbox.
type hearing struct{ Inbox }

var errProcess = errors.New("the server process has ended (its messages are in the log)")

// Line implements stdio.LineHandler.
func (h hearing) Line(line []byte) { h.Receive(line) }

// TooLarge implements stdio.LineHandler.
func (h hearing) TooLarge(id jsonrpc.ID) {
	h.Fail(id, errors.New("the response of the server exceeds the limit (limits.response-size)"))
}

// Ended implements stdio.LineHandler.
func (h hearing) Ended() { h.Inbox.Ended(errProcess) }

// processLine is a Line to a process.
type processLine struct {
	lines *stdio.Lines
	free  func()
}

// Send implements Line.
func (l *processLine) Send(_ downstream.Caller, _ *jsonrpc.Message, text []byte) bool {
	return l.lines.Send(text)
}

// Close implements Line. The place is free when the process has really ended.
func (l *processLine) Close() {
	l.lines.Close()
	l.free()
}
