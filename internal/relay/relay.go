// Package relay connects a legacy client to a server of its own era where the
// two do not share a transport: a client on a WebSocket, on HTTP+SSE or
// on stdio to a Streamable HTTP server, and any client to a process, one for
// each. Messages pass unchanged, ids included.
//
//	client ◀──▶ legacy ◀──▶ conversation ◀──▶ Line ◀──▶ server
//
// It owns the way of a message, and nothing of what it says: what the server
// writes goes to the client as it came, what the client writes is put together
// again from the same id, method and raw params. Clients and servers that both
// speak Streamable HTTP do not need it: package passthrough hands their
// exchanges on whole.
package relay

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/gate"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/internal/turns"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream/stdio"
)

// Server is what clients are connected to.
type Server interface {
	// Connect opens a line for one client. An error is a *jsonrpc.Error, or
	// anything with words for a person.
	Connect(caller downstream.Caller, inbox Inbox) (Line, error)
}

// Line carries messages to the server. It is safe for concurrent use.
type Line interface {
	// Send hands a message over, the text of msg. It may wait while the server is slow. The
	// error is one of budget when there is no memory for it to wait in, else the line has ended.
	Send(caller downstream.Caller, msg *jsonrpc.Message, text []byte) error
	// Close ends the line, and the session or the process at its end, and waits
	// for that.
	Close()
}

// Inbox takes what comes from the server. It is safe for concurrent use.
type Inbox interface {
	// Receive takes a message, which it may keep, and returns its id if it is a
	// response.
	Receive(text []byte) jsonrpc.ID
	// Fail ends a request to which there will be no response.
	Fail(id jsonrpc.ID, why error)
	// Unanswered says that the answer to a question will not reach the server.
	Unanswered(question jsonrpc.ID, why error)
	// Ended says that the line is of no more use; nil: nobody knows why.
	Ended(why error)
}

// Options configures a Relay. Server is required.
type Options struct {
	Server Server
	// Start bounds the wait for the answer to initialize; 25 s.
	Start time.Duration
	// Call bounds how long one call may take; 30 min.
	Call time.Duration
	// Calls bounds the calls of one client under way at the same time; 256.
	Calls int
	// Turns admits requests, Opening what opens sessions, so that it waits for no call; nil: all
	// at once.
	Turns, Opening *turns.Queue
	Log            zerolog.Logger
}

// Relay opens conversations, and waits for their ends.
type Relay struct {
	opt   Options
	noise zerolog.Logger // for what a process can print without end

	failed zerolog.Logger // for calls that fail

	gate *gate.Gate // conversations until their lines have ended
}

// New returns a Relay. Nothing is opened yet.
func New(opt Options) *Relay {
	opt.Start = cmp.Or(opt.Start, 25*time.Second)
	opt.Call = cmp.Or(opt.Call, 30*time.Minute)
	opt.Calls = cmp.Or(opt.Calls, 256)
	noise := logfield.AtMost(stdio.SkippedBurst, opt.Log)
	return &Relay{opt: opt, noise: noise, failed: logfield.Seldom(opt.Log), gate: gate.New()}
}

// Open does for a client what downstream.Backend says: it opens a line and hands the
// initialize request over. The result is the server's own.
func (r *Relay) Open(ctx context.Context, caller downstream.Caller, req jsonrpc.Message, push downstream.Pusher) (downstream.Conversation, []byte, error) {
	if !r.gate.Enter() {
		return nil, nil, failed("the bridge is shutting down")
	}
	c := &conversation{relay: r, principal: caller.Principal, push: push, whose: whoseOf(req.Params), calls: map[jsonrpc.ID]*pendingCall{}, parted: map[jsonrpc.ID]struct{}{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	line, err := r.opt.Server.Connect(caller, c)
	if err != nil {
		c.cancel()
		r.gate.Exit()
		return nil, nil, err
	}
	c.mu.Lock()
	c.line = line
	c.mu.Unlock()
	asked := downstream.NewRequest(req)
	result, err := c.initialize(ctx, caller, &asked)
	if err != nil {
		c.Close(err)
		return nil, nil, err
	}
	version, ok := versionOf(result)
	if !ok {
		err := failed("the server answered initialize without a protocolVersion that can be one")
		c.Close(err)
		return nil, nil, err
	}
	c.version = mcp.Version(version)
	c.mu.Lock()
	c.opened = true
	ended := c.ended
	c.mu.Unlock()
	if ended != nil {
		c.Close(ended)
		return nil, nil, failed(ended.Error())
	}
	return c, result, nil
}

// versionOf returns the revision that the answer to initialize names. It is kept for as long as
// the session lasts, and is all of that answer that is.
func versionOf(result []byte) (string, bool) {
	version, ok := rawjson.Text(rawjson.Get(result, "protocolVersion"))
	return version, ok && mcp.IsVersion(version)
}

// Close waits for the lines of conversations that were closed before, and opens
// no more.
func (r *Relay) Close() {
	r.gate.Shut()
	_ = r.gate.Wait(context.Background()) // which doesn't end
}

// errOver ends what is under way when the conversation is closed.
var errOver = errors.New("the session has ended")

func failed(text string) *jsonrpc.Error { return fault.Internal(text, fault.Reason("relay")) }
