package relay

import (
	"bytes"
	"errors"
	"io"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/sse"
)

// intake reads what a server sends, and charges the client that it is for with what is held
// of it: a message while it comes, and while it is handed on. One goroutine uses it.
type intake struct {
	from io.Reader
	hold budget.Hold

	limit  int // of a message, in bytes
	events *sse.Decoder
}

// Sizes of what is held, in bytes.
const (
	firstBuffer = 4 << 10
	// step is from what size on, and in what steps, messages are charged: small ones come
	// and go.
	step = 64 << 10
	// gentle is from what size on a buffer grows by a quarter instead of doubling.
	gentle = 1 << 20
)

// newIntake returns an intake of messages up to a limit.
func newIntake(from io.Reader, limit int, account *budget.Account) *intake {
	in := &intake{from: from, hold: budget.On(account), limit: limit}
	in.events = sse.NewDecoder(in, limit)
	return in
}

// Read implements io.Reader, for the decoder of events. The error may be one of budget.
func (in *intake) Read(p []byte) (int, error) {
	if short := in.hold.Set(in.events.Held()); short != nil {
		return 0, short
	}
	return in.from.Read(p)
}

// set charges for so many bytes, in steps.
func (in *intake) set(size int) error { return in.hold.Set(size / step * step) }

// next returns the next event, whose data has memory of its own. It is charged until handedOn.
func (in *intake) next() (sse.Event, error) {
	event, err := in.events.Next()
	if err != nil {
		return event, err
	}
	if short := in.hold.Grow(len(event.Data) / step * step); short != nil {
		return sse.Event{}, short
	}
	event.Data = bytes.Clone(event.Data)
	return event, nil
}

// handedOn gives back what was charged, but for what the decoder has until it reads on.
func (in *intake) handedOn() { _ = in.hold.Set(in.events.Held()) } // less is never refused

// close gives everything back.
func (in *intake) close() { in.hold.Release() }

// whole returns a message that is all there is to read. It is charged until close.
func (in *intake) whole() ([]byte, error) {
	body := make([]byte, 0, firstBuffer)
	for {
		n, err := in.from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case len(body) > in.limit:
			return nil, sse.ErrTooLarge
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			return nil, err
		case len(body) < cap(body):
			continue
		}
		size := 2 * cap(body)
		if cap(body) >= gentle {
			size = cap(body) + cap(body)/4
		}
		size = max(min(size, in.limit+1), cap(body)+1) // a byte more, to see that there is none
		if short := in.set(cap(body) + size); short != nil {
			return nil, short
		}
		body = append(make([]byte, 0, size), body...)
		_ = in.set(size) // less is never refused
	}
}

// unread is what the client is told of a response that could not be read; other says why, when
// it is for no reason of the bridge's.
func unread(err, other error) error {
	switch {
	case errors.Is(err, sse.ErrTooLarge):
		return errTooLarge
	case budget.Short(err):
		return notTakenIn(err)
	}
	return other
}

// notTakenIn words that there is no memory for a response.
func notTakenIn(err error) error { return short(budget.Unread(known(err))) }

// notHandedOn words that there is no memory for a message to wait for the server in.
func notHandedOn(err error) error {
	return short("the message was not handed on: " + known(err).Error())
}

func short(why string) error {
	return fault.Internal(why, fault.Reason("memory"), fault.Limit("limits.memory"))
}

// known is that error of the two of budget which an error is.
func known(err error) error {
	if errors.Is(err, budget.ErrFull) {
		return budget.ErrFull
	}
	return budget.ErrShare
}

var (
	errTooLarge = errors.New("the response of the server exceeds the limit (limits.response-size)")
	errCut      = errors.New("the connection to the server broke in the middle of a response; what it was asked may have been done")
	errUnended  = errors.New("the stream of the response ended before the response; what the server was asked may have been done")
)
