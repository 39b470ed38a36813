package jsonrpc

import (
	"errors"
	"strconv"

	"github.com/mcpbridge/bridge/rawjson"
)

// The members that an envelope defines, by their place in envelope.
const (
	fieldVersion = iota
	fieldID
	fieldMethod
	fieldParams
	fieldResult
	fieldError
	fieldResultType // only asked for in responses
	fieldCount
)

// envelope is what one pass over a text finds at its top level.
type envelope [fieldCount]rawjson.Field

// MaxMethod bounds the name of a method, in bytes: it stands in logs and headers.
const MaxMethod = 256

// Parse reads one message. The text must satisfy rawjson.Validate and the
// envelope rules: jsonrpc is "2.0"; a request has a method, an id that is a
// string or an integer and never null (B-1), and params, if any, that are an
// object; a response has exactly one of result and error, and an id. Only an
// error response may lack the id or have null in its place: its sender could not
// read the request. Unknown members are ignored.
//
// On failure the error is an *Error with CodeParse (the text is no JSON) or
// CodeInvalidRequest (it is JSON but no message), and the Message holds nothing
// but the ID, whenever one can be made out. If the text was meant as a response, the
// Message has that error as its Error too: it is the end of what the ID names.
func Parse(b []byte) (Message, error) {
	var env envelope
	return env.parse(b, "", fieldError)
}

// ParseResponse is Parse for one who waits for the response to the request id. A
// message with that id gets the very ID, where Parse would copy it.
//
// The raw member resultType of its result, which is found in the same pass, comes
// with it: looking for it behind 64 KiB takes 2.5 µs. It aliases b; nil: there is none.
func ParseResponse(b []byte, id ID) (msg Message, resultType []byte, err error) {
	var env envelope
	env[fieldResultType].Name, env[fieldResultType].In = "resultType", "result"
	msg, err = env.parse(b, id, fieldResultType)
	return msg, env[fieldResultType].Value, err
}

// parse reads a message whose id is probably id. last is the last of the fields
// to look for.
func (env *envelope) parse(b []byte, id ID, last int) (m Message, err error) {
	env[fieldVersion].Name = "jsonrpc"
	env[fieldID].Name = "id"
	env[fieldMethod].Name = "method"
	env[fieldParams].Name = "params"
	env[fieldResult].Name = "result"
	env[fieldError].Name = "error"
	if err = rawjson.Survey(b, env[:last+1]); err != nil {
		m.ID = recoverID(b)
		return m, syntaxError(err)
	}
	if reason := m.read(env, b, id); reason != "" {
		broken := unreadable(CodeInvalidRequest, reason)
		if m = (Message{ID: m.ID}); env.isResponse() {
			m.Error = broken
		}
		return m, broken
	}
	return m, nil
}

// isResponse reports whether a text can be meant as nothing but a response.
func (env *envelope) isResponse() bool {
	return env[fieldMethod].Value == nil && (env[fieldResult].Value != nil || env[fieldError].Value != nil)
}

// unreadable says what is wrong with a text. It goes to its sender as it is, and no peer has
// said it: data.bridge tells (F-2), as in all errors that internal/fault makes.
func unreadable(code int, reason string) *Error {
	return &Error{Code: code, Message: reason, Data: []byte(`{"bridge":{}}`)}
}

// syntaxError converts what rawjson refused. A duplicate member is well-formed
// JSON that no message may contain.
func syntaxError(err error) *Error {
	if errors.Is(err, rawjson.ErrDuplicate) {
		return unreadable(CodeInvalidRequest, err.Error())
	}
	return unreadable(CodeParse, err.Error())
}

// read fills m from env and returns what is wrong, or "".
func (m *Message) read(env *envelope, b []byte, expected ID) string {
	if rawjson.KindOf(b) != rawjson.Object {
		return "a message is a JSON object"
	}
	id := env[fieldID].Value
	validID := isID(id)
	if validID {
		m.ID = expected
		if string(id) != string(expected) {
			m.ID = newID(id)
		}
	}
	if string(env[fieldVersion].Value) != `"2.0"` {
		return `jsonrpc must be "2.0"`
	}
	nullError := env[fieldError].Value != nil && rawjson.KindOf(id) == rawjson.Null
	if id != nil && !validID && !nullError {
		return "id must be a string or an integer"
	}
	if env[fieldMethod].Value != nil {
		return m.readCall(env)
	}
	return m.readResponse(env)
}

func (m *Message) readCall(env *envelope) string {
	if env[fieldResult].Value != nil || env[fieldError].Value != nil {
		return "a message has either a method or a result or an error"
	}
	method, ok := methodName(env[fieldMethod].Value)
	if !ok || method == "" {
		return "method must be a string that is not empty"
	}
	if len(method) > MaxMethod {
		return "a method name must not be longer than " + strconv.Itoa(MaxMethod) + " bytes"
	}
	params := env[fieldParams].Value
	if params != nil && rawjson.KindOf(params) != rawjson.Object {
		return "params must be an object"
	}
	m.Method, m.Params = method, params
	return ""
}

func (m *Message) readResponse(env *envelope) string {
	result, failure := env[fieldResult].Value, env[fieldError].Value
	switch {
	case result == nil && failure == nil:
		return "a message has a method, a result or an error"
	case result != nil && failure != nil:
		return "a response has either a result or an error"
	case result != nil && m.ID == "":
		return "a result needs an id"
	case result != nil:
		m.Result = result
		return ""
	}
	code, okCode := rawjson.Int(rawjson.Get(failure, "code"))
	text, okText := rawjson.Name(rawjson.Get(failure, "message"))
	if !okCode || !okText {
		return "error must have an integer code and a string message"
	}
	m.Error = &Error{Code: int(code), Message: text, Data: rawjson.Get(failure, "data")}
	return ""
}

// IsBatch reports whether b starts like an array.
func IsBatch(b []byte) bool { return rawjson.KindOf(b) == rawjson.Array }

// Split returns the elements of a batch array for Parse to judge one by one;
// they alias b. It fails with an *Error: CodeParse when b is no JSON as a whole,
// CodeInvalidRequest when it is no array or an empty one. Of a longer array it
// returns limit+1 elements, so that the caller sees that there are more, and spends
// nothing on the others.
func Split(b []byte, limit int) ([][]byte, error) {
	if err := rawjson.Balanced(b); err != nil {
		return nil, syntaxError(err)
	}
	var all [][]byte
	for element := range rawjson.Elements(b) {
		if all = append(all, element); len(all) > limit {
			break
		}
	}
	if len(all) == 0 {
		return nil, unreadable(CodeInvalidRequest, "a batch is an array with at least one message")
	}
	return all, nil
}
