package diff

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/mcpbridge/bridge/mcp"
)

// Rule is a rule of docs/translation.md.
type Rule struct {
	ID   string // "B-28", or "B.6" of a rule that has a section's name
	Text string
}

//go:embed rules.txt
var book string // generated: make docs

// texts has what each rule says.
var texts = func() map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(book) {
		id, text, _ := strings.Cut(strings.TrimSpace(line), "\t")
		all[id] = text
	}
	return all
}()

// Rules returns the rules that ids name, separated by blanks.
func Rules(ids string) (rules []Rule) {
	for id := range strings.FieldsSeq(ids) {
		rules = append(rules, Rule{id, texts[id]})
	}
	return rules
}

func rulesOf(step Step, method string, path []string, op Op) []Rule {
	for _, row := range tables[step] {
		if row.applies(method, path, op) {
			return Rules(row.rules)
		}
	}
	return nil
}

// row says by which rules a member changes.
type row struct {
	method string // "": any
	op     Op     // "": any
	// path is where the member is: names, * for any one, ** for any number at its
	// beginning or end; "" for the message itself.
	path  string
	rules string
}

func (r *row) applies(method string, path []string, op Op) bool {
	return (r.method == "" || r.method == method) && (r.op == "" || r.op == op) && matches(strings.Fields(r.path), path)
}

func matches(pattern, path []string) bool {
	if n := len(pattern); n > 0 && pattern[n-1] == "**" {
		return len(path) >= n-1 && matches(pattern[:n-1], path[:n-1])
	}
	if len(pattern) > 0 && pattern[0] == "**" {
		return len(path) >= len(pattern)-1 && matches(pattern[1:], path[len(path)-len(pattern)+1:])
	}
	return slices.EqualFunc(pattern, path, func(p, name string) bool { return p == "*" || p == name })
}

// tables have the rules by which everything changes that passes, in the order in which
// they are asked for.
var tables = [...][]row{
	Request: {
		{op: Added, path: "", rules: "B-3"},
		{path: "_meta " + mcp.MetaProtocolVersion, rules: "A-21 B-4"},
		{path: "_meta " + mcp.MetaClientInfo + " **", rules: "A-20 B-4"},
		{path: "_meta " + mcp.MetaClientCapabilities + " **", rules: "A-18 A.5 B-4"},
		{path: "_meta " + mcp.MetaLogLevel, rules: "B-6"},
		{path: "_meta progressToken", rules: "B-5"},
		{path: "_meta **", rules: "B-4"},
		{op: Removed, path: "task", rules: "B-7"},
		{op: Removed, path: "cursor", rules: "B-8"},
		{op: Removed, path: "inputResponses **", rules: "B-7"},
		{op: Removed, path: "requestState", rules: "B-7"},
		{path: "inputResponses **", rules: "D-I6 D-I7"},
		{path: "requestState", rules: "D-I3 D-I4"},
	},
	Result: {
		{op: Removed, path: "resultType", rules: "B-28"},
		{op: Removed, path: "ttlMs", rules: "B-28"},
		{op: Removed, path: "cacheScope", rules: "B-28"},
		{op: Removed, path: "inputRequests", rules: "B-31"},
		{op: Removed, path: "requestState", rules: "B-31"},
		{path: "_meta **", rules: "B-28"},
		{op: Removed, path: "structuredContent", rules: "B-35"},
		{path: "structuredContent **", rules: "B-34"},
		{op: Added, path: "content", rules: "B-30"},
		{op: Changed, path: "content", rules: "B-30"},
		{op: Added, path: "content *", rules: "B-36"},
		{path: "content **", rules: "B.8 B-39"},
		{path: "messages **", rules: "B.8 B-39"},
		{path: "contents **", rules: "P-2"},
		{op: Removed, path: "tools *", rules: "B-23"},
		{path: "tools * outputSchema **", rules: "B.6 B-34"},
		{path: "tools * inputSchema **", rules: "B.6"},
		{path: "tools * **", rules: "B.6 P-2"},
		{path: "prompts **", rules: "P-2"},
		{path: "resources **", rules: "P-2"},
		{path: "resourceTemplates **", rules: "P-2"},
		{path: "completion **", rules: "P-2"},
		{method: mcp.MethodInitialize, path: "protocolVersion", rules: "A-14"},
		{method: mcp.MethodInitialize, path: "capabilities **", rules: "A.4"},
		{method: mcp.MethodInitialize, path: "**", rules: "A.3"},
		{op: Added, path: "", rules: "F.2"}, // an error that became a result
		{op: Removed, path: "**", rules: "P-2"},
	},
	Failure: {
		{path: "code", rules: "F.2"},
		{path: "message", rules: "F.2"},
		{path: "data **", rules: "F-1"},
		{path: "", rules: "F.2"},
	},
	Question: {
		{path: "params _meta **", rules: "C.5"}, // of every kind
		{path: "params task **", rules: "C.5"},
		{method: mcp.MethodElicitationCreate, op: Added, path: "params elicitationId", rules: "C-27"},
		{method: mcp.MethodElicitationCreate, path: "params requestedSchema **", rules: "C.5 C-26"},
		{method: mcp.MethodElicitationCreate, path: "params **", rules: "C.5"},
		{method: mcp.MethodSamplingCreateMessage, path: "params **", rules: "C.7"},
		{method: mcp.MethodRootsList, path: "params **", rules: "C.8"},
		{path: "params **"},                     // of no kind: nobody has written one down
		{op: Removed, path: "**", rules: "M-5"}, // what is no part of a request
	},
	Answer: {
		{path: "content", rules: "C.9 C-26"},
		{op: Removed, path: "content", rules: "C.9 C-29"},
		{path: "action", rules: "C.9"},
		{path: "roots **", rules: "C.8"},
		{op: Removed, path: "**", rules: "C.9"},
	},
	Notification: {
		{path: "progressToken", rules: "C-1"},
		{path: "progress", rules: "C-4"},
		{path: "total", rules: "C-4"},
		{op: Removed, path: "message", rules: "C-5"},
		{path: "_meta **", rules: "C-9 C-22"},
		{op: Removed, path: "**", rules: "P-2"},
	},
}

// localRules has, by a client's method, the rules of answers that are the bridge's own.
var localRules = map[string]string{
	mcp.MethodInitialize: "A-1", mcp.MethodPing: "A-9", mcp.MethodSetLevel: "B-6", mcp.MethodResourcesSubscribe: "C-15",
	mcp.MethodResourcesUnsubscribe: "C-14", mcp.MethodToolsList: "B-40", mcp.MethodPromptsList: "B-40", mcp.MethodResourcesList: "B-40",
	mcp.MethodResourcesTemplatesList: "B-40", mcp.MethodResourcesRead: "B-40", mcp.MethodTasksGet: "G.3", mcp.MethodTasksList: "G.3",
	mcp.MethodTasksResult: "G.3", mcp.MethodTasksCancel: "G.3", mcp.MethodTasksUpdate: "A-12", mcp.MethodDiscover: "A-12", mcp.MethodListen: "A-12",
}

// LocalRules returns the rules by which the bridge answers a method without asking the server.
func LocalRules(method string) []Rule { return Rules(localRules[method]) }

// Unheard returns the rules by which a notification of the server does not go on.
func Unheard(method string) []Rule {
	switch method {
	case mcp.NotificationProgress:
		return Rules("C-3 C-4")
	case mcp.NotificationMessage:
		return Rules("C-6 C-7")
	}
	return Rules("C-2")
}

// Swallowed returns the rules by which a notification of the client ends here.
func Swallowed(method string) []Rule {
	switch method {
	case mcp.NotificationInitialized:
		return Rules("A-5")
	case mcp.NotificationCancelled:
		return Rules("D-T13 B-11")
	}
	return Rules("P-5 B-11")
}
