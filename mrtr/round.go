package mrtr

import (
	"encoding/json"
	"fmt"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// InputRequest is one entry of inputRequests: something the server needs from
// the client before it can go on.
type InputRequest struct {
	Key    string          `json:"key"`              // the server's name for it, echoed literally (D-I7)
	Method string          `json:"method"`           // elicitation/create, sampling/createMessage or roots/list
	Params json.RawMessage `json:"params,omitempty"` // as the server sent them; nil when absent
}

// Round is the parsed outcome of one upstream request.
type Round struct {
	Type     string         // mcp.ResultComplete, ResultInputRequired or ResultTask
	Requests []InputRequest // in document order; empty in a state-only round
	State    []byte         // raw requestState token; nil when absent (D-I3, D-I4)
}

// Violation is a modern server's breach of the protocol. It ends the one flow
// it occurred in with an error that names the upstream's fault.
type Violation struct {
	Rule string // rule id, for the log
	Text string // what the server did, without its payload
}

// Error names the fault and its author.
func (v *Violation) Error() string { return "upstream server: " + v.Text }

// readType reads the raw member resultType; absent means complete (B-27). ok is
// false when it is there but no string.
func readType(raw string) (typ string, ok bool) {
	switch raw { // the usual ones without a copy
	case "", `"` + mcp.ResultComplete + `"`:
		return mcp.ResultComplete, true
	case `"` + mcp.ResultInputRequired + `"`:
		return mcp.ResultInputRequired, true
	}
	return rawjson.Text([]byte(raw))
}

// parseRound reads the result of the round in flight, of raw type rawType. The
// error is a *Violation.
func (f *Flow) parseRound(result []byte, rawType string) (Round, error) {
	typ, ok := readType(rawType)
	switch {
	case rawjson.KindOf(result) != rawjson.Object:
		return Round{}, &Violation{"B-30", "the result is not an object"}
	case ok && (typ == mcp.ResultComplete || typ == mcp.ResultTask):
		return Round{Type: typ}, nil
	case !ok || typ != mcp.ResultInputRequired:
		return Round{}, &Violation{"B-27", "unknown resultType" + token(typ)}
	case !mcp.MayRequireInput(f.Method) && (!f.ListsAsk || !mcp.IsList(f.Method)):
		return Round{}, &Violation{"D-12", "input_required is not allowed in answer to " + f.Method}
	}
	return parseInputRequired(result, f.limits().State)
}

// parseInputRequired bounds the request state to maxState bytes of JSON text.
func parseInputRequired(result []byte, maxState int) (Round, error) {
	round := Round{Type: mcp.ResultInputRequired}
	var err error
	if round.State, err = parseState(rawjson.Get(result, "requestState"), maxState); err != nil {
		return Round{}, err
	}
	if round.Requests, err = parseRequests(rawjson.Get(result, "inputRequests")); err != nil {
		return Round{}, err
	}
	if len(round.Requests) == 0 && round.State == nil {
		return Round{}, &Violation{"D-T6", "input_required with neither inputRequests nor requestState"}
	}
	return round, nil
}

// parseState keeps the token as it stood in the text: decoding and encoding it
// again would replace lone surrogates (D-I3). null counts as absent (D-T6).
func parseState(raw []byte, maxState int) ([]byte, error) {
	switch rawjson.KindOf(raw) {
	case rawjson.Invalid, rawjson.Null:
		return nil, nil
	case rawjson.String:
		if len(raw) > maxState {
			return nil, &Violation{"D-I5", fmt.Sprintf("requestState of %d bytes exceeds the limit of %d", len(raw), maxState)}
		}
		return raw, nil
	}
	return nil, &Violation{"D-T6", "requestState is not a string"}
}

func parseRequests(raw []byte) ([]InputRequest, error) {
	switch rawjson.KindOf(raw) {
	case rawjson.Invalid, rawjson.Null:
		return nil, nil
	case rawjson.Object:
	default:
		return nil, &Violation{"D-T6", "inputRequests is not an object"}
	}
	var requests []InputRequest
	for key, value := range rawjson.Members(raw) {
		if len(requests) == maxRequestsPerRound {
			return nil, &Violation{"D-I18", fmt.Sprintf("more than %d input requests in one round", maxRequestsPerRound)}
		}
		method, _ := rawjson.Name(rawjson.Get(value, "method"))
		requests = append(requests, InputRequest{
			Key:    string(key),
			Method: method,
			Params: rawjson.Get(value, "params"),
		})
	}
	return requests, nil
}
