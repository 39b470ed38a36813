package metrics

import (
	"slices"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/translate"
)

// other stands for every value that is not one of those which are expected.
const other = "_OTHER"

// methods are the values of labels that name a method: those of clients, of questions, and
// of the bridge.
var methods = words(append(questionMethods(),
	mcp.MethodInitialize, mcp.MethodPing, mcp.MethodToolsList, mcp.MethodToolsCall, mcp.MethodPromptsList, mcp.MethodPromptsGet,
	mcp.MethodResourcesList, mcp.MethodResourcesTemplatesList, mcp.MethodResourcesRead, mcp.MethodResourcesSubscribe,
	mcp.MethodResourcesUnsubscribe, mcp.MethodComplete, mcp.MethodSetLevel, mcp.MethodDiscover, mcp.MethodListen,
	mcp.MethodTasksGet, mcp.MethodTasksUpdate, mcp.MethodTasksCancel, mcp.MethodTasksList, mcp.MethodTasksResult,
)...)

func questionMethods() (list []string) {
	for k := range mcp.InputKinds {
		list = append(list, k.Method())
	}
	return list
}

func words(list ...string) map[string]string {
	set := make(map[string]string, len(list))
	for _, w := range list {
		set[w] = w
	}
	return set
}

// methodWord returns the label for a method. Its text is the bridge's own, so that no
// label keeps a client's message in memory.
func methodWord(method string) string {
	if method == mcp.MethodToolsCall { // as nearly all are
		return mcp.MethodToolsCall
	}
	if w, ok := methods[method]; ok {
		return w
	}
	return other
}

// versionWord returns the label for a revision.
func versionWord(version mcp.Version) string {
	switch {
	case version == mcp.V20260728:
		return string(mcp.V20260728)
	case version.IsDraft():
		return "draft"
	}
	if i := slices.Index(mcp.Legacy[:], version); i >= 0 {
		return string(mcp.Legacy[i])
	}
	return other
}

// losses are the words for what older revisions cannot say.
var losses = words(translate.Losses...)

func lossWord(what string) string { return expected(losses, what) }

// The words for what happens on the way to a token.
var (
	oauthStepWords = words("discovery", "registration", "sign_in", "token", "refresh", "exchange")
	oauthOutcomes  = words("ok", "refused", "unavailable", "expired")
)

// expected returns the label for a word that is to be one of a set.
func expected(set map[string]string, word string) string {
	if w, ok := set[word]; ok {
		return w
	}
	return other
}

// codes are the JSON-RPC errors that have a label of their own.
var codes = map[int]string{
	-32700: "-32700", -32600: "-32600", -32601: "-32601", -32602: "-32602", -32603: "-32603", -32002: "-32002",
	-32020: "-32020", -32021: "-32021", -32022: "-32022", -32042: "-32042", -32000: "-32000", -32001: "-32001", -1: "-1",
}

// codeWord returns the label for the code of an error, "" for none.
func codeWord(code int) string {
	if code == 0 {
		return ""
	}
	if w, ok := codes[code]; ok {
		return w
	}
	return other
}

// isServersError reports whether an error that the bridge answered with counts as an
// error of the operation: the conventions blame the client for the others.
func isServersError(code int) bool {
	switch code {
	case 0, -32700, -32600, -32601, -32602, mcp.CodeResourceNotFound:
		return false
	}
	return true
}

// operation is the conventions' gen_ai.operation.name: known for tools only.
func operation(method string) string {
	if method == mcp.MethodToolsCall {
		return "execute_tool"
	}
	return ""
}
