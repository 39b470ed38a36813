package channel

import (
	"bytes"
	"errors"
	"io"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/message"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/rs/zerolog"
)

// ReadFrom receives what read returns, until it fails. io.EOF is no error.
func (c *Channel) ReadFrom(read func() ([]byte, error)) {
	for {
		frame, err := read()
		if budget.Short(err) {
			c.rejectShort(frame, err)
			continue
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			c.HangUp(err)
			return
		}
		c.receive(frame)
	}
}

// rejectShort answers a message of which only the beginning was kept, for want of
// memory. Its id stands there, or nowhere that we know of.
func (c *Channel) rejectShort(beginning []byte, err error) {
	refusal := fault.Internal(err.Error())
	if c.rejectEach(beginning, refusal) {
		return
	}
	msg, _ := jsonrpc.Parse(beginning)
	c.reject(msg.ID, refusal)
}

// receive is Take for a connection on which errors are answered, too.
func (c *Channel) receive(frame []byte) {
	if id, err := c.Take(frame, ""); err != nil {
		c.reject(id, err)
	}
}

// Take handles one message, or an array of them, which it keeps. It doesn't wait for
// answers: those are written. The error is for a frame that is no message, id the
// request that it may name. authorization is what the message came with itself, "" for nothing.
func (c *Channel) Take(frame []byte, authorization string) (id jsonrpc.ID, err *jsonrpc.Error) {
	own := authorization != "" && authorization != c.caller.Authorization // and was judged as such
	if jsonrpc.IsBatch(frame) {
		if err = c.takeBatch(frame, own); err != nil && c.rejectEach(frame, err) {
			err = nil
		}
		return "", err
	}
	msg, failed := jsonrpc.Parse(frame)
	if failed != nil {
		c.takeBroken(&msg)
		return message.ErrorID(&msg), message.AsError(failed)
	}
	c.take(&msg, cap(frame), own, c.send)
	return "", nil
}

// takeBroken ends the question to which a broken text was meant as the answer: no
// better one will come (C.9).
func (c *Channel) takeBroken(msg *jsonrpc.Message) {
	if message.IsBrokenAnswer(msg) {
		c.take(msg, len(msg.ID), false, c.send)
	}
}

// reject answers a frame that is no message. Without an id only the newest
// version allows an error at all (E-32).
func (c *Channel) reject(id jsonrpc.ID, err *jsonrpc.Error) {
	if id == "" && !c.allowsIDlessErrors() {
		c.noteDropped(err, "dropped a message that shows no id to answer")
		return
	}
	c.send(jsonrpc.AppendError(nil, id, err))
}

func (c *Channel) noteDropped(err *jsonrpc.Error, what string) {
	c.opt.Dropped.Warn().Stringer(logfield.Transport, c.transport).Int(logfield.Code, err.Code).Str(zerolog.ErrorFieldName, err.Message).Msg(what)
}

// rejectEach answers the requests of an array that is refused, of which frame may be the beginning only: its
// client waits for these ids. It reports whether there are any. Of no more than an array may have are answered.
func (c *Channel) rejectEach(frame []byte, err *jsonrpc.Error) (some bool) {
	left := c.opt.MaxBatch
	for id := range message.Asked(frame) {
		if left == 0 {
			c.noteDropped(err, "an array was refused that has more requests than are answered")
			break
		}
		left--
		c.reject(id, err)
	}
	return left < c.opt.MaxBatch
}

func (c *Channel) allowsIDlessErrors() bool {
	c.in.Lock()
	defer c.in.Unlock()
	return message.ErrorsWithoutID(c.version)
}

// takeBatch takes an array (E-17), or says why it cannot be taken as a whole. Before initialize
// the version is unknown, so it is accepted there.
func (c *Channel) takeBatch(frame []byte, own bool) *jsonrpc.Error {
	c.in.Lock()
	allowed, of := c.version == "" || message.Batches(c.version), c.pusher
	c.in.Unlock()
	if !allowed {
		return message.NoBatches()
	}
	b, err := message.ParseBatch(frame, c.opt.MaxBatch)
	if err != nil {
		return err
	}
	for i := range b.Notifications {
		c.take(&b.Notifications[i], detach(&b.Notifications[i], frame), own, c.send)
	}
	for i := range b.Responses {
		c.take(&b.Responses[i], detach(&b.Responses[i], frame), own, c.send)
	}
	g := &gather{c: c, of: of, hold: budget.On(c.opt.Account), left: len(b.Broken) + len(b.Requests)}
	for _, msg := range b.Broken {
		g.add(msg)
	}
	for i := range b.Requests {
		c.take(&b.Requests[i], detach(&b.Requests[i], frame), own, g.add)
	}
	return nil
}

// detach has a message of an array stay in memory without the others, unless all are small,
// and returns what it then keeps there.
func detach(msg *jsonrpc.Message, frame []byte) (held int) {
	if len(frame) <= messageCost {
		return len(frame)
	}
	msg.Params, msg.Result = bytes.Clone(msg.Params), bytes.Clone(msg.Result)
	return len(msg.Params) + len(msg.Result)
}

// take handles one message, which keeps so many bytes in memory besides its id and its
// method; own says that it came with other credentials than the connection, answer gets the
// response to a request.
func (c *Channel) take(msg *jsonrpc.Message, held int, own bool, answer func([]byte)) {
	for at := fresh; ; at = patient {
		room := c.handle(msg, held, own, at, answer)
		if room == nil {
			return
		}
		select {
		case <-room:
		case <-c.gone:
		case <-c.ctx.Done():
		}
	}
}

// stage is how far a message has come.
type stage int

const (
	fresh   stage = iota
	patient       // its reader waits for room in the backlog
	taken         // it was in the backlog
)

// roomLocked has a reader wait while the backlog is full, and its client may know of the answer to initialize: who takes the backlog
// may wait for a relayed server to read, as the reader would. Nothing is dropped for that. What it returns is closed when the message may
// be tried again, of which there may be several; nil: there is room, or no reason to wait for it.
func (c *Channel) roomLocked(at stage) <-chan struct{} {
	waits := c.answering || c.catching && !c.opening || at == patient
	if !waits || c.closed || c.left() || len(c.backlog) < c.opt.MaxPending {
		return nil
	}
	if c.room == nil {
		c.room = make(chan struct{})
	}
	return c.room
}

// left reports whether the connection is of no more use.
func (c *Channel) left() bool {
	select {
	case <-c.gone:
		return true
	default:
		return c.ctx.Err() != nil
	}
}

// handle is one attempt to take a message, or to leave it in the backlog; room is what its reader waits for where that is full.
func (c *Channel) handle(msg *jsonrpc.Message, held int, own bool, at stage, answer func([]byte)) (room <-chan struct{}) {
	if msg.Kind() == jsonrpc.Request {
		return c.request(msg, held, own, at, answer)
	}
	c.in.Lock()
	conv, wait := c.conv, c.waitsLocked(at) && !c.closed
	if wait {
		room = c.roomLocked(at)
	}
	if wait && len(c.backlog) < c.opt.MaxPending {
		if hold, err := c.hold(msg, held); err == nil {
			c.backlog = append(c.backlog, queued{*msg, held, own, answer, hold})
		}
	}
	c.in.Unlock()
	switch {
	case wait:
	case msg.Kind() == jsonrpc.Notification:
		c.notify(conv, msg, own)
	case conv != nil: // else an answer to nothing
		err := conv.Answer(c.from(), *msg)
		if budget.Short(err) { // the question stays open
			c.reject(msg.ID, fault.Internal(err.Error()))
		} else if err != nil { // the session is in no other process
			c.opt.Dropped.Info().Stringer(logfield.Transport, c.transport).Msg(message.LateAnswer)
		}
	}
	return room
}

// waitsLocked reports whether a message waits for its session to be open.
func (c *Channel) waitsLocked(at stage) bool { return c.opening || c.catching && at != taken }

// notify hands a notification on: a cancellation to whoever serves the request, any other
// one to the session. Without one it comes too early, with credentials that have had their time too late.
func (c *Channel) notify(conv downstream.Conversation, msg *jsonrpc.Message, own bool) {
	out := c.cancelled(msg)
	switch {
	case out != nil:
		conv = out.conv
	case !own && c.lapse.expired():
		return
	}
	if conv != nil && !c.withdraw(conv, msg) {
		conv.Notify(c.caller, *msg)
	}
}

// cancelled returns the request that a notification cancels, nil when there is none.
func (c *Channel) cancelled(msg *jsonrpc.Message) *reply {
	if msg.Method != mcp.NotificationCancelled {
		return nil
	}
	c.in.Lock()
	defer c.in.Unlock()
	return c.inFlight[jsonrpc.ID(rawjson.Get(msg.Params, "requestId"))]
}

// messageCost is what a message is charged for besides its text, in bytes.
const messageCost = 8 << 10

// listenCost is what one is charged for besides that which never ends by itself, in bytes: a
// goroutine and a connection to the server, with TLS.
const listenCost = 64 << 10

// withdraw looks for a cancelled request. Its id is free again at once, so it must be heard of
// however little has been done for it: one that belongs to no session by its context. A request
// that nobody has begun to serve is done with here, and withdraw reports true.
func (c *Channel) withdraw(conv downstream.Conversation, msg *jsonrpc.Message) bool {
	if conv.Orderly() || msg.Method != mcp.NotificationCancelled {
		return false
	}
	c.in.Lock()
	defer c.in.Unlock()
	id := jsonrpc.ID(rawjson.Get(msg.Params, "requestId"))
	out := c.inFlight[id]
	delete(c.inFlight, id)
	if out != nil && out.cancel != nil {
		out.cancel(downstream.ErrCancelled)
	}
	if out == nil || !out.fate.CompareAndSwap(waiting, withdrawn) {
		return false
	}
	out.link.Pass()
	return true
}
