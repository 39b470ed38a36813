package legacy

import (
	"errors"
	"fmt"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/rs/zerolog"
)

// receive takes one frame or line, which it keeps. It doesn't wait for answers.
func (c *channel) receive(frame []byte) {
	if jsonrpc.IsBatch(frame) {
		if err := c.receiveBatch(frame); err != nil {
			c.reject("", err)
		}
		return
	}
	msg, err := jsonrpc.Parse(frame)
	if err != nil {
		c.takeBroken(&msg)
		c.reject(errorID(&msg), asError(err))
		return
	}
	c.take(&msg, c.send)
}

// takeBroken ends the question to which a broken text was meant as the answer: no
// better one will come (C.9).
func (c *channel) takeBroken(msg *jsonrpc.Message) {
	if isBrokenAnswer(msg) {
		c.take(msg, c.send)
	}
}

// reject answers a frame that is no message. Without an id only the newest
// version allows an error at all (E-32).
func (c *channel) reject(id jsonrpc.ID, err *jsonrpc.Error) {
	if id == "" && !c.allowsIDlessErrors() {
		c.log.Warn().Int(logfield.Code, err.Code).Str(zerolog.ErrorFieldName, err.Message).Msg("dropped a message that shows no id to answer")
		return
	}
	c.send(jsonrpc.AppendError(nil, id, err))
}

func (c *channel) allowsIDlessErrors() bool {
	c.in.Lock()
	defer c.in.Unlock()
	return idlessErrors(c.version)
}

// receiveBatch takes an array (E-17). Before initialize the version is unknown,
// so it is accepted there. The error is one that belongs to no id.
func (c *channel) receiveBatch(frame []byte) *jsonrpc.Error {
	b, err := parseBatch(frame, c.opt.MaxBatch)
	if err != nil {
		return err
	}
	c.in.Lock()
	allowed := c.version == "" || arrays(c.version)
	c.in.Unlock()
	if !allowed {
		return c.refuseBatch(b)
	}
	for i := range b.notifications {
		c.take(&b.notifications[i], c.send)
	}
	for i := range b.responses {
		c.take(&b.responses[i], c.send)
	}
	g := &gather{c: c, left: len(b.broken) + len(b.requests)}
	for _, msg := range b.broken {
		g.add(msg)
	}
	for i := range b.requests {
		c.take(&b.requests[i], g.add)
	}
	return nil
}

// refuseBatch answers each request on its own: a client that sent an array
// waits for these ids. When there is none it returns the refusal.
func (c *channel) refuseBatch(b *batch) *jsonrpc.Error {
	refusal := invalid("batches are not part of this protocol version")
	if len(b.requests) == 0 {
		return refusal
	}
	for i := range b.requests {
		c.reject(b.requests[i].ID, refusal)
	}
	return nil
}

// take handles one message; answer gets the response to a request.
func (c *channel) take(msg *jsonrpc.Message, answer func([]byte)) {
	if msg.Kind() == jsonrpc.Request {
		c.request(msg, answer)
		return
	}
	c.in.Lock()
	conv, wait := c.conv, c.opening && !c.closed
	if wait && len(c.backlog) < c.opt.MaxPending {
		c.backlog = append(c.backlog, queued{*msg, answer})
	}
	c.in.Unlock()
	switch {
	case wait || conv == nil: // an answer to nothing, or a notification too early
	case msg.Kind() == jsonrpc.Notification:
		if !c.withdraw(conv, msg) {
			conv.Notify(c.caller, *msg)
		}
	default:
		conv.Answer(c.caller, *msg)
	}
}

// request admits a request and starts it, or answers why not.
func (c *channel) request(msg *jsonrpc.Message, answer func([]byte)) {
	start, err := c.admit(msg, answer)
	switch {
	case err != nil:
		answer(jsonrpc.AppendError(nil, msg.ID, err))
	case start != nil:
		start()
	}
}

// admit decides on a request with the inbound lock held. It returns what to run,
// which does not wait for answers, or nothing when the request waits behind
// initialize.
func (c *channel) admit(msg *jsonrpc.Message, answer func([]byte)) (start func(), err *jsonrpc.Error) {
	c.in.Lock()
	defer c.in.Unlock()
	switch {
	case c.closed:
		return nil, internal("the session is closed")
	case msg.Method == mcp.MethodPing && c.conv == nil:
		return func() { c.work.Go(func() { answer(jsonrpc.AppendResult(nil, msg.ID, []byte(`{}`))) }) }, nil
	case c.opening:
		if len(c.backlog) >= c.opt.MaxPending {
			return nil, invalid("too many messages before initialize was answered")
		}
		c.backlog = append(c.backlog, queued{*msg, answer})
		return nil, nil
	case msg.Method == mcp.MethodInitialize:
		return c.admitInitialize(msg, answer), nil
	case c.conv == nil && negotiate.Classify(msg.Method, msg.Params, nil) == negotiate.Modern:
		// at once, and no error of the modern era, so that a dual-era
		// client falls back to initialize.
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found: initialize first"}
	case c.conv == nil:
		return nil, invalid("initialize first")
	}
	if _, used := c.inFlight[msg.ID]; used {
		return nil, invalid("a request with this id is already under way") // B-1
	}
	if c.running >= c.opt.MaxInFlight {
		return nil, internal("too many requests are under way on this connection")
	}
	if c.gate != nil && !c.gate.Enter() {
		return nil, internal("bridge is shutting down")
	}
	out := &channelReply{c: c, id: msg.ID, answer: answer}
	c.inFlight[msg.ID] = out
	c.running++
	c.work.Add(2) // serve, and the reply that may outlive it
	conv, req := c.conv, *msg
	if conv.Orderly() {
		return func() { c.serve(conv, req, out) }, nil
	}
	return func() { go c.serve(conv, req, out) }, nil
}

// errAgain is the cause of a conversation's end when its client began anew.
var errAgain = errors.New("session was initialized again")

// admitInitialize opens the session, or begins anew: gateways hand one
// connection to one client after the other, each of which initializes it. The inbound
// lock is held.
func (c *channel) admitInitialize(msg *jsonrpc.Message, answer func([]byte)) (start func()) {
	old, req := c.conv, *msg
	c.conv, c.opening = nil, true
	c.work.Add(1)
	return func() {
		go func() {
			defer c.work.Done()
			if old != nil {
				old.Close(errAgain)
				c.abandonAll()
			}
			c.open(req, answer)
		}()
	}
}

// abandonAll gives up the requests that are left of a conversation that ended. Their
// ids may be used again from now on, and an answer that comes late must not be taken for
// one to the next client's request.
func (c *channel) abandonAll() {
	c.in.Lock()
	left := make([]*channelReply, 0, len(c.inFlight))
	for _, out := range c.inFlight {
		left = append(left, out)
	}
	c.in.Unlock()
	for _, out := range left {
		out.Abandon()
	}
}

func (c *channel) open(req jsonrpc.Message, answer func([]byte)) {
	conv, result, err := c.backend.Open(c.ctx, c.caller, req, c)
	if err != nil {
		answer(jsonrpc.AppendError(nil, req.ID, c.openError(err)))
	} else {
		c.in.Lock()
		c.version = conv.Version()
		c.in.Unlock()
		answer(jsonrpc.AppendResult(nil, req.ID, result))
	}
	c.in.Lock()
	c.opening = false
	backlog := c.backlog
	c.backlog = nil
	closed, cause := c.closed, c.cause
	if err == nil && !closed {
		c.conv = conv
	}
	c.in.Unlock()
	if err == nil && closed {
		conv.Close(cause)
	}
	for i := range backlog {
		c.take(&backlog[i].msg, backlog[i].answer)
	}
}

// openError is what a client without HTTP statuses learns of a failed
// initialize.
func (c *channel) openError(err error) *jsonrpc.Error {
	if c.ctx.Err() != nil { // who closes only the input still reads
		return internal("the connection ended before the server had answered")
	}
	var refusal *downstream.Refusal
	if errors.As(err, &refusal) {
		return internal(fmt.Sprintf("the upstream server demands authorization (status %d): configure credentials for it", refusal.Status))
	}
	return asError(err)
}

func (c *channel) serve(conv downstream.Conversation, req jsonrpc.Message, out *channelReply) {
	defer c.work.Done()
	if !out.fate.CompareAndSwap(waiting, started) {
		out.Abandon()
		return
	}
	defer recoverRequest(c.log, req.Method, req.ID, out)
	conv.Serve(c.ctx, c.caller, downstream.NewRequest(req), out)
}

// withdraw looks for a cancelled request. Its id is free again at once; a request
// that nobody has begun to serve is done with here, and withdraw reports true.
func (c *channel) withdraw(conv downstream.Conversation, msg *jsonrpc.Message) bool {
	if conv.Orderly() || msg.Method != mcp.NotificationCancelled {
		return false
	}
	c.in.Lock()
	defer c.in.Unlock()
	id := jsonrpc.ID(rawjson.Get(msg.Params, "requestId"))
	out := c.inFlight[id]
	delete(c.inFlight, id)
	return out != nil && out.fate.CompareAndSwap(waiting, withdrawn)
}

// settle frees the id and the place of a request that is over.
func (c *channel) settle(out *channelReply) {
	c.in.Lock()
	defer c.in.Unlock()
	c.running--
	if c.inFlight[out.id] == out {
		delete(c.inFlight, out.id)
	}
}

func internal(message string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: message}
}
