package relay

import (
	"errors"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/upstream/stdio"
)

// Process is a Server that is a command: a legacy server over stdio has one
// client, so each client gets a process of its own.
type Process struct {
	Options stdio.Options
	Places  *Places
}

// Connect implements Server.
func (p *Process) Connect(caller downstream.Caller, inbox Inbox) (Line, error) {
	free, err := p.Places.Take(caller.Tenant)
	if err != nil {
		return nil, err
	}
	own := p.Options
	own.Account = caller.Account
	lines, err := stdio.StartLines(own, hearing{inbox})
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

// Refused implements stdio.LineHandler.
func (h hearing) Refused(id jsonrpc.ID, why error) { h.Fail(id, notTakenIn(why)) }

// Ended implements stdio.LineHandler.
func (h hearing) Ended() { h.Inbox.Ended(errProcess) }

// processLine is a Line to a process.
type processLine struct {
	lines *stdio.Lines
	free  func()
}

// Send implements Line.
func (l *processLine) Send(_ downstream.Caller, _ *jsonrpc.Message, text []byte) error {
	return l.lines.Send(text)
}

// Close implements Line. The place is free when the process has really ended.
func (l *processLine) Close() {
	l.lines.Close()
	l.free()
}
