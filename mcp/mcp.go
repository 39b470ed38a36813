// Package mcp names what the Model Context Protocol names: versions, methods,
// headers, _meta keys and error codes. It owns no behaviour beyond comparing
// versions, so that every other package spells the protocol the same way.
package mcp

import "strings"

// Version is a protocol revision, spelled as its date string.
type Version string

// The revisions of the protocol. The first four are legacy: a client opens a
// session with initialize. The last one is modern: stateless, no handshake.
const (
	V20241105 Version = "2024-11-05"
	V20250326 Version = "2025-03-26"
	V20250618 Version = "2025-06-18"
	V20251125 Version = "2025-11-25"
	V20260728 Version = "2026-07-28"
)

// Legacy lists the legacy versions, oldest first.
var Legacy = [...]Version{V20241105, V20250326, V20250618, V20251125}

// AtLeast reports whether v is o or a later revision. Date strings order
// lexically, so no table is needed.
func (v Version) AtLeast(o Version) bool { return v >= o }

// IsLegacy reports whether v is one of the four legacy revisions.
func (v Version) IsLegacy() bool {
	switch v {
	case V20241105, V20250326, V20250618, V20251125:
		return true
	}
	return false
}

// IsPlausible reports whether v can be a version at all: letters, digits, and what parts
// them, as every header could carry. What a server lists beside its versions goes nowhere.
func (v Version) IsPlausible() bool {
	if v == "" || len(v) > maxName {
		return false
	}
	for _, c := range []byte(v) {
		switch {
		case '0' <= c && c <= '9', 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', strings.IndexByte("-._+", c) >= 0:
		default:
			return false
		}
	}
	return true
}

// IsDraft reports whether v names a draft of 2026-07-28 (I-3): those were called
// DRAFT-… or by an earlier date. Names that no header could carry are none.
func (v Version) IsDraft() bool {
	return v.IsPlausible() && (strings.HasPrefix(string(v), "DRAFT-") || strings.HasPrefix(string(v), "2026-") && v < V20260728)
}

// maxName bounds the name of a version, in bytes.
const maxName = 64

// Request methods of either era.
const (
	MethodInitialize             = "initialize"
	MethodPing                   = "ping"
	MethodToolsList              = "tools/list"
	MethodToolsCall              = "tools/call"
	MethodPromptsList            = "prompts/list"
	MethodPromptsGet             = "prompts/get"
	MethodResourcesList          = "resources/list"
	MethodResourcesTemplatesList = "resources/templates/list"
	MethodResourcesRead          = "resources/read"
	MethodResourcesSubscribe     = "resources/subscribe"
	MethodResourcesUnsubscribe   = "resources/unsubscribe"
	MethodComplete               = "completion/complete"
	MethodSetLevel               = "logging/setLevel"
	MethodElicitationCreate      = "elicitation/create"
	MethodSamplingCreateMessage  = "sampling/createMessage"
	MethodRootsList              = "roots/list"
	MethodDiscover               = "server/discover"
	MethodListen                 = "subscriptions/listen"
	MethodTasksGet               = "tasks/get"
	MethodTasksUpdate            = "tasks/update"
	MethodTasksCancel            = "tasks/cancel"
	MethodTasksList              = "tasks/list"
	MethodTasksResult            = "tasks/result"
)

// Notification methods of either era.
const (
	NotificationInitialized          = "notifications/initialized"
	NotificationCancelled            = "notifications/cancelled"
	NotificationProgress             = "notifications/progress"
	NotificationMessage              = "notifications/message"
	NotificationRootsListChanged     = "notifications/roots/list_changed"
	NotificationToolsListChanged     = "notifications/tools/list_changed"
	NotificationPromptsListChanged   = "notifications/prompts/list_changed"
	NotificationResourcesListChanged = "notifications/resources/list_changed"
	NotificationResourcesUpdated     = "notifications/resources/updated"
	NotificationElicitationComplete  = "notifications/elicitation/complete"
	NotificationAcknowledged         = "notifications/subscriptions/acknowledged"
	NotificationTasks                = "notifications/tasks"
	NotificationTasksStatus          = "notifications/tasks/status"
)

// HTTP headers, in the canonical form of net/http.
const (
	HeaderSessionID       = "Mcp-Session-Id"
	HeaderProtocolVersion = "Mcp-Protocol-Version"
	HeaderMethod          = "Mcp-Method"
	HeaderName            = "Mcp-Name"
	HeaderParamPrefix     = "Mcp-Param-"
	HeaderLastEventID     = "Last-Event-Id"
)

// Keys under _meta that the protocol owns.
const (
	MetaPrefix             = "io.modelcontextprotocol/"
	MetaProtocolVersion    = MetaPrefix + "protocolVersion"
	MetaClientInfo         = MetaPrefix + "clientInfo"
	MetaClientCapabilities = MetaPrefix + "clientCapabilities"
	MetaLogLevel           = MetaPrefix + "logLevel"
	MetaServerInfo         = MetaPrefix + "serverInfo"
	MetaSubscriptionID     = MetaPrefix + "subscriptionId"
	MetaRelatedTask        = MetaPrefix + "related-task"

	// ExtensionTasks is the tasks extension's name in capability sets.
	ExtensionTasks = MetaPrefix + "tasks"
)

// Error codes that the protocol adds to JSON-RPC's.
const (
	CodeResourceNotFound   = -32002
	CodeHeaderMismatch     = -32020
	CodeMissingCapability  = -32021
	CodeUnsupportedVersion = -32022
	CodeURLElicitation     = -32042
)

// Values of resultType in modern results.
const (
	ResultComplete      = "complete"
	ResultInputRequired = "input_required"
	ResultTask          = "task"
)

// MayRequireInput reports whether a modern server may answer method with
// input_required (D-12).
func MayRequireInput(method string) bool {
	switch method {
	case MethodToolsCall, MethodPromptsGet, MethodResourcesRead:
		return true
	}
	return false
}

// IsList reports whether method lists what a server offers.
func IsList(method string) bool {
	switch method {
	case MethodToolsList, MethodPromptsList, MethodResourcesList, MethodResourcesTemplatesList:
		return true
	}
	return false
}

// IsReadOnly reports whether a request with which clients of every era use what a
// server offers changes nothing by definition.
func IsReadOnly(method string) bool {
	switch method {
	case MethodToolsList, MethodPromptsList, MethodPromptsGet, MethodResourcesList, MethodResourcesTemplatesList,
		MethodResourcesRead, MethodComplete:
		return true
	}
	return false
}

// IsListChanged reports whether a notification says that a list of the server has changed. They
// come to all of its clients, and of several the newest says it all.
func IsListChanged(method string) bool {
	switch method {
	case NotificationToolsListChanged, NotificationPromptsListChanged, NotificationResourcesListChanged:
		return true
	}
	return false
}

// LogLevels lists the log severities of RFC 5424 in rising order.
var LogLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// Severity returns the rank of a log level, or -1 when it is unknown.
func Severity(level string) int {
	for i, l := range LogLevels {
		if l == level {
			return i
		}
	}
	return -1
}
