package dialect

import (
	"strings"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// forms bring what a server says to the final shapes, and back, once, at ingress: nothing
// behind them knows drafts (I-1). The zero forms do only what is harmless for final
// servers (I-2).
type forms struct {
	// On admits draft markers, members and error codes. Only configuration or a
	// draft version string turns it on, never the shape of a result (I-3).
	On bool
	// WrapAnswers sends every input response as {"result": …}. It cannot be
	// detected, so only configuration sets it (I-6).
	WrapAnswers bool
}

// speaksDraft reports whether a list of versions, as it stands in a discover
// result's supportedVersions or an error's data.supported, names a draft (I-3).
func speaksDraft(versions []byte) bool { return Newest(versions) != "" }

// Newest returns the newest draft in a list of versions, spelled as the
// server spells it (I-8), or "". A dated name counts as newer than a label.
func Newest(versions []byte) (newest string) {
	for v := range rawjson.Elements(versions) {
		name, _ := rawjson.Text(v)
		if !mcp.Version(name).IsDraft() {
			continue
		}
		dated, was := name[0] == '2', newest != "" && newest[0] == '2'
		if newest == "" || dated && !was || dated == was && name > newest {
			newest = name
		}
	}
	return newest
}

// Result normalises a result of method to the final shapes.
func (d forms) Result(method string, result []byte) []byte {
	if rawjson.KindOf(result) != rawjson.Object {
		return result
	}
	if method == mcp.MethodToolsCall || isTaskMethod(method) {
		result = d.task(method, result)
	}
	switch {
	case !d.On:
		return result
	case method == mcp.MethodDiscover:
		result = finalCapabilities(result)
	}
	if mayBeInterim(method) && isInterim(result) { // I-4
		return rawjson.Apply(nil, result,
			rawjson.Edit{Name: "result_type"},
			rawjson.Edit{Name: "status"},
			rawjson.Edit{Name: "resultType", Value: []byte(`"` + mcp.ResultInputRequired + `"`)})
	}
	return finalMembers(method, result)
}

// finalCapabilities declares the tasks extension for a server whose draft still
// had tasks in the core (I-14).
func finalCapabilities(discover []byte) []byte {
	caps := rawjson.Get(discover, "capabilities")
	extensions := rawjson.Get(caps, "extensions")
	if rawjson.KindOf(rawjson.Get(caps, "tasks")) != rawjson.Object || rawjson.Has(extensions, mcp.ExtensionTasks) {
		return discover
	}
	if extensions == nil {
		extensions = []byte("{}")
	}
	extensions = rawjson.Apply(nil, extensions, rawjson.Edit{Name: mcp.ExtensionTasks, Value: []byte("{}")})
	caps = rawjson.Apply(nil, caps, rawjson.Edit{Name: "extensions", Value: extensions})
	return rawjson.Apply(nil, discover, rawjson.Edit{Name: "capabilities", Value: caps})
}

// finalMembers renames the members of complete results that drafts spelled
// differently (I-4, I-9).
func finalMembers(method string, result []byte) []byte {
	var edits []rawjson.Edit
	if rawjson.Has(result, "result_type") {
		edits = append(edits, rawjson.Edit{Name: "result_type"})
	}
	if isCacheable(method) && !rawjson.Has(result, "ttlMs") {
		if ms := inMilliseconds(rawjson.Get(result, "ttl")); ms != nil {
			edits = append(edits, rawjson.Edit{Name: "ttl"}, rawjson.Edit{Name: "ttlMs", Value: ms})
		}
	}
	if edits == nil {
		return result
	}
	return rawjson.Apply(nil, result, edits...)
}

// mayBeInterim names the methods whose results some draft let be interim.
func mayBeInterim(method string) bool {
	return mcp.MayRequireInput(method) || mcp.IsList(method) || method == mcp.MethodTasksResult
}

// isInterim recognises every marker that a draft used (I-4).
func isInterim(result []byte) bool {
	marked := false
	for _, name := range [...]string{"resultType", "result_type"} {
		if value := rawjson.Get(result, name); value != nil {
			marked = true
			if isInterimType(value) {
				return true
			}
		}
	}
	if marked {
		return false
	}
	for _, name := range [...]string{"content", "messages", "contents", "structuredContent",
		"tools", "prompts", "resources", "resourceTemplates"} {
		if rawjson.Has(result, name) {
			return false
		}
	}
	return string(rawjson.Get(result, "status")) == `"incomplete"` ||
		isInputRequests(rawjson.Get(result, "inputRequests")) ||
		rawjson.KindOf(rawjson.Get(result, "requestState")) == rawjson.String
}

func isInterimType(value []byte) bool {
	typ, _ := rawjson.Text(value)
	return typ == "incomplete" || typ == mcp.ResultInputRequired
}

// isInputRequests reports whether v is an object of nothing but input requests.
func isInputRequests(v []byte) bool {
	count := 0
	for _, entry := range rawjson.Members(v) {
		count++
		method, _ := rawjson.Text(rawjson.Get(entry, "method"))
		if _, known := mcp.InputKindOf(method); !known {
			return false
		}
	}
	return count > 0
}

// Hint says what would make sense of a result that was refused (I-5); empty: nothing.
func Hint(result []byte) string {
	typ, _ := rawjson.Text(rawjson.Get(result, "resultType"))
	if typ != "incomplete" && !rawjson.Has(result, "result_type") {
		return ""
	}
	return "the server seems to speak a draft of 2026-07-28; the setting draft: on admits that"
}

// InputResponses puts this round's answers into the form that the server
// expects (I-6).
func (d forms) InputResponses(responses []byte) []byte {
	if !d.WrapAnswers || responses == nil {
		return responses
	}
	wrapped := []byte{'{'}
	for key, value := range rawjson.Members(responses) {
		if len(wrapped) > 1 {
			wrapped = append(wrapped, ',')
		}
		wrapped = append(append(rawjson.AppendQuote(wrapped, string(key)), `:{"result":`...), value...)
		wrapped = append(wrapped, '}')
	}
	return append(wrapped, '}')
}

// Error gives a draft's error code its final value, judged by the error's shape:
// without it these codes are the implementation's own (I-7, F-3). status is the
// HTTP status, or 0 on other transports.
func (d forms) Error(status int, e *jsonrpc.Error) *jsonrpc.Error {
	if !d.On {
		return e
	}
	code := e.Code
	switch e.Code {
	case -32004, jsonrpc.CodeInvalidParams:
		if refusesVersion(e) {
			code = mcp.CodeUnsupportedVersion
		}
	case -32003:
		if rawjson.KindOf(rawjson.Get(e.Data, "requiredCapabilities")) == rawjson.Object {
			code = mcp.CodeMissingCapability
		}
	case -32001:
		if message := strings.ToLower(e.Message); status == 400 && strings.Contains(message, "header") {
			code = mcp.CodeHeaderMismatch
		}
	}
	if code == e.Code {
		return e
	}
	return &jsonrpc.Error{Code: code, Message: e.Message, Data: e.Data}
}

// refusesVersion recognises the refusal of a protocol version. For the first
// days of server/discover it had the code of invalid params, which says nothing,
// so the version that is refused must be one that the bridge sends.
func refusesVersion(e *jsonrpc.Error) bool {
	requested, _ := rawjson.Text(rawjson.Get(e.Data, "requested"))
	version := mcp.Version(requested)
	return rawjson.KindOf(rawjson.Get(e.Data, "supported")) == rawjson.Array &&
		(e.Code != jsonrpc.CodeInvalidParams && rawjson.Has(e.Data, "requested") || version == mcp.V20260728 || version.IsDraft())
}

// refusedFor returns the versions that a server supports, as JSON, when e
// has the shape of refusing one in any draft or in 2026-07-28; else nil (I-3).
func refusedFor(e *jsonrpc.Error) (supported []byte) {
	switch e.Code {
	case mcp.CodeUnsupportedVersion, -32004, jsonrpc.CodeInvalidParams:
		if refusesVersion(e) {
			return rawjson.Get(e.Data, "supported")
		}
	}
	return nil
}

func isCacheable(method string) bool {
	return mcp.IsList(method) || method == mcp.MethodResourcesRead || method == mcp.MethodDiscover
}
