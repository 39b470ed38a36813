package jsonrpc

import "github.com/mcpbridge/bridge/rawjson"

// methodName decodes a method. The names that the revisions of the protocol
// define come from constants, so that a usual message costs no memory for them.
func methodName(v []byte) (string, bool) {
	if len(v) < 2 || v[0] != '"' {
		return "", false
	}
	name := v[1 : len(v)-1]
	if len(name) < len(known) {
		for _, s := range known[len(name)] {
			if string(name) == s {
				return s, true
			}
		}
	}
	return rawjson.Name(v)
}

// known has the usual names by their length, which is quicker than a map.
var known = func() (byLength [48][]string) {
	names := []string{
		"completion/complete", "elicitation/create", "initialize", "logging/setLevel", "ping",
		"prompts/get", "prompts/list", "resources/list", "resources/read", "resources/subscribe",
		"resources/templates/list", "resources/unsubscribe", "roots/list", "sampling/createMessage",
		"server/discover", "subscriptions/listen", "tasks/cancel", "tasks/get", "tasks/list",
		"tasks/result", "tasks/update", "tools/call", "tools/list",
		"notifications/cancelled", "notifications/elicitation/complete", "notifications/initialized",
		"notifications/message", "notifications/progress", "notifications/prompts/list_changed",
		"notifications/resources/list_changed", "notifications/resources/updated",
		"notifications/roots/list_changed", "notifications/subscriptions/acknowledged",
		"notifications/tasks", "notifications/tasks/status", "notifications/tools/list_changed",
	}
	for _, s := range names {
		byLength[len(s)] = append(byLength[len(s)], s)
	}
	return byLength
}()
