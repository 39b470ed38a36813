package message

import (
	"bytes"
	"fmt"
	"iter"

	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// Batch is a parsed array of messages.
type Batch struct {
	Requests      []jsonrpc.Message
	Notifications []jsonrpc.Message
	Responses     []jsonrpc.Message
	Broken        [][]byte // ready errors for members that are no messages but have an id
}

// ParseBatch splits an array and applies the rules of E-14 and A-2.
func ParseBatch(body []byte, limit int) (*Batch, *jsonrpc.Error) {
	parts, err := jsonrpc.Split(body, limit)
	if err != nil {
		return nil, AsError(err)
	}
	if len(parts) > limit {
		return nil, TooLong(limit)
	}
	b := new(Batch)
	for _, part := range parts {
		if err := b.add(part); err != nil {
			return nil, err
		}
	}
	if len(b.Responses) > 0 && len(b.Requests)+len(b.Broken) > 0 {
		return nil, fault.Request("a batch must not mix requests and responses")
	}
	return b, nil
}

// NoBatches refuses an array where there are none (E-2).
func NoBatches() *jsonrpc.Error {
	return fault.Request("batches are not part of this protocol version")
}

// TooLong refuses an array of more messages than there may be.
func TooLong(limit int) *jsonrpc.Error {
	return fault.Request(fmt.Sprintf("a batch of more than %d messages is too large (limits.batch)", limit))
}

func (b *Batch) add(part []byte) *jsonrpc.Error {
	msg, err := jsonrpc.Parse(part)
	switch {
	case err != nil && IsBrokenAnswer(&msg): // C.9
		b.Responses = append(b.Responses, msg)
	case err != nil && msg.ID == "":
		return AsError(err)
	case err != nil:
		b.Broken = append(b.Broken, jsonrpc.AppendError(nil, msg.ID, AsError(err)))
	case msg.Method == mcp.MethodInitialize:
		return fault.Request("initialize must not be part of a batch")
	case msg.Kind() == jsonrpc.Notification:
		b.Notifications = append(b.Notifications, msg)
	case msg.Kind() == jsonrpc.Response:
		b.Responses = append(b.Responses, msg)
	default:
		b.Requests = append(b.Requests, msg)
	}
	return nil
}

// Asked yields the ids that an array shows its requests to have, be it broken, broken off or too large.
// Nothing is yielded when it is none.
func Asked(array []byte) iter.Seq[jsonrpc.ID] {
	return func(yield func(jsonrpc.ID) bool) {
		for part := range rawjson.Elements(array) {
			if rawjson.KindOf(part) != rawjson.Object {
				continue
			}
			msg, err := jsonrpc.Parse(part)
			if err != nil && !rawjson.Has(part, "method") {
				continue // it may be an answer whose result is not shown: the id would be a question's
			}
			if id := ErrorID(&msg); id != "" && !yield(id) {
				return
			}
		}
	}
}

// Array returns one array of these messages.
func Array(parts [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(parts, []byte{','})...), ']')
}
