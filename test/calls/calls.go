// Package calls is what the drivers chaos and replicas have in common: calls whose questions,
// answers, state and results name them, so that what went astray is noticed; both ends of
// their HTTP. What a call goes through, and how its end is judged, is the driver's own.
package calls

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// The tools: one that changes the world, one that may be asked again.
const (
	Act  = "act"
	Read = "read"
)

// Params are those of a call. Its arguments travel with it, so that a server without memory
// knows what it is to go through; its name is the token of its progress, if it wants any.
func Params(tool, name string, progress bool, arguments any) string {
	text, err := json.Marshal(arguments)
	if err != nil {
		panic(err) // a struct of strings and numbers
	}
	meta := ""
	if progress {
		meta = fmt.Sprintf(`,"_meta":{"progressToken":%q}`, name)
	}
	return fmt.Sprintf(`{"name":%q,"arguments":%s%s}`, tool, text, meta)
}

// Question is what the server asks before a round.
func Question(name string, round int) string { return fmt.Sprintf("%s/%d", name, round) }

// Answer is what the person says to a question.
func Answer(question string) string { return "answer to " + question }

// Accept is the client's message with it.
func Accept(id json.RawMessage, question string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"value":%q}}}`, id, Answer(question))
}

// State is what the bridge is to bring back with the answer.
func State(name string, round int) string {
	mac := hmac.New(sha256.New, []byte("calls"))
	fmt.Fprintf(mac, "%s %d", name, round)
	return hex.EncodeToString(mac.Sum(nil))
}

// Ask is the result of the round before this one: it asks its question.
func Ask(name string, round int) string {
	return fmt.Sprintf(`{"resultType":"input_required","requestState":%q,"inputRequests":{"q":{"method":"elicitation/create","params":{"mode":"form","message":%q,`+
		`"requestedSchema":{"type":"object","properties":{"value":{"type":"string"}},"required":["value"]}}}}}`, State(name, round), Question(name, round))
}

// Message is any message of the bridge.
type Message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Message string `json:"message"`
	} `json:"params"`
	Result *struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		IsError bool `json:"isError"`
	} `json:"result"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
}
