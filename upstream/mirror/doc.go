// Package mirror knows which parts of a request's body HTTP headers repeat, so that
// what stands between a client and a server need not read bodies (B.2): the method, the
// version, what the request names, and the arguments of tools whose schemas say so. It
// owns how a value is spelled in a header, what is remembered of tools' schemas
// ([Tools]), and the judgement of headers that somebody else wrote ([Checker]).
package mirror

import "github.com/mcpbridge/bridge/mcp"

// Field is one HTTP header.
type Field struct{ Name, Value string }

// NameSource is the member of params that Mcp-Name repeats, "" for methods without one.
func NameSource(method string) string {
	switch {
	case mcp.HasName(method):
		return "name"
	case method == mcp.MethodResourcesRead:
		return "uri"
	case method == mcp.MethodTasksGet, method == mcp.MethodTasksUpdate, method == mcp.MethodTasksCancel:
		return "taskId"
	}
	return ""
}
