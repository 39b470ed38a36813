// Package fault makes the errors that are the bridge's own. They have the standard
// codes of JSON-RPC, a text for people, and data.bridge with what a program may want
// to know, by which nobody takes them for the server's (F-2). It owns their form;
// what is said is its callers'.
package fault

import (
	"fmt"
	"strconv"

	"github.com/mcpbridge/bridge/internal/clip"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/rawjson"
)

// Detail is a member of data.bridge.
type Detail = rawjson.Edit

// New makes an error. The text is cut at 400 bytes.
func New(code int, text string, details ...Detail) *jsonrpc.Error {
	e := Uncut(code, text, details...)
	e.Message = Clip(text)
	return e
}

// Uncut is New for a text that is of no use when it is cut: one with an address.
func Uncut(code int, text string, details ...Detail) *jsonrpc.Error {
	data := append([]byte(`{"bridge":`), rawjson.Apply(nil, []byte(`{}`), details...)...)
	return &jsonrpc.Error{Code: code, Message: text, Data: append(data, '}')}
}

// Internal is for what the client cannot help: -32603.
func Internal(text string, details ...Detail) *jsonrpc.Error {
	return New(jsonrpc.CodeInternal, text, details...)
}

// Request is for what is no request that can be served now: -32600.
func Request(text string, details ...Detail) *jsonrpc.Error {
	return New(jsonrpc.CodeInvalidRequest, text, details...)
}

// Params is for a request that asks for what cannot be: -32602.
func Params(text string, details ...Detail) *jsonrpc.Error {
	return New(jsonrpc.CodeInvalidParams, text, details...)
}

// mostToken bounds a progress token, in bytes: the bridge writes it with each progress message, for which the server pays with a few.
const mostToken = 1 << 10

// Token is for a progress token that is too long; nil: it is not.
func Token(token []byte) *jsonrpc.Error {
	if len(token) <= mostToken {
		return nil
	}
	return Params(fmt.Sprintf("the progressToken has %d bytes; it may have %d", len(token), mostToken))
}

// Method is for a method that there is not: -32601.
func Method(text string, details ...Detail) *jsonrpc.Error {
	return New(jsonrpc.CodeMethodNotFound, text, details...)
}

// Reason names the cause in one word, for programs.
func Reason(word string) Detail { return Text("reason", word) }

// Limit names the setting that was exceeded.
func Limit(setting string) Detail { return Text("limit", setting) }

// Hint says what the person at the client can do.
func Hint(text string) Detail { return Text("hint", text) }

// Text is a member with a text, which is cut at 400 bytes.
func Text(name, text string) Detail {
	return Detail{Name: name, Value: rawjson.AppendQuote(nil, Clip(text))}
}

// Number is a member with a number.
func Number(name string, n int) Detail {
	return Detail{Name: name, Value: strconv.AppendInt(nil, int64(n), 10)}
}

// maxText bounds text in errors, in bytes: a peer may have written it.
const maxText = 400

// Clip cuts text at 400 bytes, between characters.
func Clip(text string) string { return clip.Text(text, maxText) }
