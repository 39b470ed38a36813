package upstream

import (
	"slices"
	"time"

	"github.com/mcpbridge/bridge/internal/buffers"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
)

// Answer is the upstream's response: exactly one of Result and Error is set.
type Answer struct {
	// Result is valid until Release. Replace is how it becomes another one.
	Result []byte
	Error  *jsonrpc.Error

	body *[]byte // what Result is part of, if that is to be reused

	typ   string // raw resultType of Result
	typed bool   // typ is known

	// AnswerIn is how long what Result asks may wait for answers, of whoever asks in the server's
	// place; 0: as long as what servers ask.
	AnswerIn time.Duration

	// Refused reports an error with HTTP status 400: nothing was executed.
	Refused bool

	// HTTP is the version in which the answer came; none from a process.
	HTTP observe.HTTP
}

// ResultType returns the raw JSON of Result's member resultType, empty when there
// is none. For a Result as it came it was found while that was parsed: looking
// for it behind 64 KiB of text takes 2.5 µs.
func (a *Answer) ResultType() string {
	if a.typed {
		return a.typ
	}
	return typeText(rawjson.Get(a.Result, "resultType"))
}

// Replace puts another result in the place of Result.
func (a *Answer) Replace(result []byte) { a.Result, a.typed = result, false }

// typeText returns a raw resultType as a string, without memory for the usual ones.
func typeText(raw []byte) string {
	for _, known := range [...]string{`"` + mcp.ResultComplete + `"`, `"` + mcp.ResultInputRequired + `"`, `"` + mcp.ResultTask + `"`} {
		if string(raw) == known {
			return known
		}
	}
	return string(raw)
}

// Release gives the memory of Result back, for the client to reuse. Nobody may
// use Result, or any part of it, afterwards: what is kept must be copied before.
// Releasing is optional, and doing so again does nothing. An Error owns its
// memory.
func (a *Answer) Release() {
	if a == nil {
		return
	}
	body := a.body
	a.body = nil
	a.Replace(nil)
	if body != nil {
		buffers.Put(body)
	}
}

// Settle gives the answer's error its final code. d may be nil.
func (a *Answer) Settle(d Fallback, status int) {
	if d != nil && a != nil && a.Error != nil {
		a.Error = d.Error(status, a.Error)
	}
}

// NewAnswer makes an answer of a response. The result aliases the text of msg, an error does
// not. typ is the result's raw resultType.
func NewAnswer(msg *jsonrpc.Message, typ []byte) *Answer {
	if msg.Error != nil {
		msg.Error.Data = slices.Clone(msg.Error.Data)
	}
	return &Answer{Result: msg.Result, Error: msg.Error, typ: typeText(typ), typed: true}
}

// Owns says that Result is part of a buffer of package buffers, which Release gives back.
func (a *Answer) Owns(body *[]byte) { a.body = body }

// Detach makes the answer independent of the text that it was parsed from.
func (a *Answer) Detach() *Answer {
	if a.Result != nil {
		a.body = buffers.Get(len(a.Result))
		*a.body = append(*a.body, a.Result...)
		a.Result = *a.body
	}
	return a
}

// EndOfListen is the result of Caller.Listen for the response that ended it.
func EndOfListen(ans *Answer, err error) error {
	if err != nil {
		return err
	}
	if ans.Error != nil {
		return ans.Error
	}
	return nil
}

// Subscribed reports whether a notification belongs to the listen called id
// (C-18). Some servers spell an integer id as a string (I-2), and a stream
// identifies its subscription even when the message does not.
func Subscribed(params []byte, id jsonrpc.ID) bool {
	v := rawjson.Get(rawjson.Get(params, "_meta"), mcp.MetaSubscriptionID)
	if v == nil || string(v) == string(id) {
		return true
	}
	text, ok := rawjson.Text(v)
	return ok && text == string(id)
}
