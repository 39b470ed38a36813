package jsonrpc

import (
	"strconv"

	"github.com/mcpbridge/bridge/rawjson"
)

func appendQuoted(dst []byte, s string) []byte { return rawjson.AppendQuote(dst, s) }

const version = `{"jsonrpc":"2.0"`

// AppendRequest appends a request to dst. params is raw JSON; nil leaves the
// member out.
func AppendRequest(dst []byte, id ID, method string, params []byte) []byte {
	return appendCall(appendID(append(dst, version...), id), method, params)
}

// AppendNotification appends a notification to dst. params is raw JSON; nil
// leaves the member out.
func AppendNotification(dst []byte, method string, params []byte) []byte {
	return appendCall(append(dst, version...), method, params)
}

// AppendResult appends the response with the raw JSON result to dst. A nil
// result is written as {}.
func AppendResult(dst []byte, id ID, result []byte) []byte {
	dst = AppendResultHead(dst, id)
	if len(result) == 0 {
		result = []byte("{}")
	}
	return append(append(dst, result...), '}')
}

// AppendResultHead begins a response: the caller appends the raw result and a
// closing brace, which saves a copy where the result is written piece by piece.
func AppendResultHead(dst []byte, id ID) []byte {
	return append(appendID(append(dst, version...), id), `,"result":`...)
}

// AppendError appends the response with the error e to dst. The empty id leaves
// the id member out, which is how a sender says that it could not read the
// request's.
func AppendError(dst []byte, id ID, e *Error) []byte {
	dst = appendID(append(dst, version...), id)
	dst = append(dst, `,"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = append(dst, `,"message":`...)
	dst = appendQuoted(dst, e.Message)
	if len(e.Data) > 0 {
		dst = append(append(dst, `,"data":`...), e.Data...)
	}
	return append(dst, '}', '}')
}

func appendID(dst []byte, id ID) []byte {
	if id == "" {
		return dst
	}
	return append(append(dst, `,"id":`...), id...)
}

func appendCall(dst []byte, method string, params []byte) []byte {
	dst = appendQuoted(append(dst, `,"method":`...), method)
	if len(params) > 0 {
		dst = append(append(dst, `,"params":`...), params...)
	}
	return append(dst, '}')
}

// AppendTo appends the message to dst: a response without an Error as one with the
// result, which is {} when it is nil.
func (m *Message) AppendTo(dst []byte) []byte {
	switch {
	case m.Method != "" && m.ID != "":
		return AppendRequest(dst, m.ID, m.Method, m.Params)
	case m.Method != "":
		return AppendNotification(dst, m.Method, m.Params)
	case m.Error != nil:
		return AppendError(dst, m.ID, m.Error)
	}
	return AppendResult(dst, m.ID, m.Result)
}
