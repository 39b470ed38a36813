// Package jsonrpc reads and writes JSON-RPC 2.0 messages as the Model Context
// Protocol uses them.
//
// It owns the envelope: which message a text is, its id, and its params, result
// or error as raw bytes of that text. It does not own what a method means, nor
// the matching of responses to requests.
package jsonrpc

import "strconv"

// An ID is the raw JSON token of a request id: `1` or `"a"`. The empty ID means
// that there is none; `""` in quotes is a real id (P-7). Ids compare with their
// type, so `1` and `"1"` differ (P-8), and by their bytes.
type ID string

// IntID returns the ID whose value is n.
func IntID(n int64) ID { return ID(strconv.FormatInt(n, 10)) }

// A Kind says what a message is.
type Kind int

// The kinds of messages.
const (
	Request Kind = iota
	Notification
	Response
)

// String returns the lower-case name of the kind.
func (k Kind) String() string {
	switch k {
	case Request:
		return "request"
	case Notification:
		return "notification"
	}
	return "response"
}

// A Message is one parsed message. Params, Result and Error.Data are raw JSON
// that aliases the parsed text; nil means that the member is absent, null is
// four bytes (P-7).
type Message struct {
	ID     ID
	Method string
	Params []byte
	Result []byte
	Error  *Error
}

// Kind returns what the message is. A message without a method is a response.
func (m *Message) Kind() Kind {
	switch {
	case m.Method == "":
		return Response
	case m.ID == "":
		return Notification
	}
	return Request
}

// The error codes of JSON-RPC 2.0.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// An Error is the error member of a response, and what Parse and Split fail
// with. Data is raw JSON; nil means absent.
type Error struct {
	Code    int
	Message string
	Data    []byte
}

// maxErrorText bounds, in bytes, what a peer's message adds to an error text.
const maxErrorText = 200

// Error implements error. The text holds at most 200 bytes of the message and
// nothing of the data.
func (e *Error) Error() string {
	text := e.Message
	if len(text) > maxErrorText {
		text = text[:maxErrorText-3] + "..."
	}
	return "JSON-RPC error " + strconv.Itoa(e.Code) + ": " + strconv.Quote(text)
}
