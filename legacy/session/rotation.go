package session

import (
	"crypto/subtle"
	"slices"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/bearer"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// rotatedMay reports whether a message is safe with unproven credentials: the
// upstream is asked about each call, and the conversation tells whose questions
// and cancellations are whose. What the bridge serves by itself is not (H-9).
func rotatedMay(msg *jsonrpc.Message) bool {
	return msg.Kind() != jsonrpc.Request || msg.Method == mcp.MethodToolsCall || mcp.IsReadOnly(msg.Method)
}

// IsOwners reports whether a message is about what belongs to the owner of a session, or may
// become his: then it is worth asking the server about a newer token before. Of all others the
// server judges the token by itself, or they have no effect on it.
func IsOwners(msg *jsonrpc.Message) bool {
	switch {
	case msg.Kind() == jsonrpc.Notification:
		return msg.Method == mcp.NotificationCancelled
	case msg.Kind() == jsonrpc.Response:
		return true
	case msg.Method == mcp.MethodToolsCall:
		return rawjson.Has(msg.Params, "task") // which only its owner could fetch
	}
	return msg.Method != mcp.MethodInitialize && !mcp.IsReadOnly(msg.Method)
}

// sameSubject reports whether two Authorization headers carry JSON web tokens
// that claim the same issuer and subject. The claims are not verified here.
func sameSubject(a, b string) bool {
	subject := bearer.Subject(a)
	return subject != "" && subject == bearer.Subject(b)
}

// binding is whose session it is: the credentials and the principal that they stand for.
type binding struct {
	auth, principal string
	n               uint64 // counts the bindings of the session; that of who opened it is 1
	// also is what newer credentials stand for by themselves, by which they were known in the session
	// before it was bound to them.
	also []string
}

// maxAlso bounds how many of those are remembered, the newest.
const maxAlso = 8

// renewed is the binding to newer credentials, which stand for this principal by themselves.
func (b binding) renewed(auth, principal string) *binding {
	also := slices.DeleteFunc(slices.Clone(b.also), func(one string) bool { return one == principal })
	also = append(also, principal)
	return &binding{auth, b.principal, b.n + 1, also[max(0, len(also)-maxAlso):]}
}

// by reports whether it is to these credentials.
func (b binding) by(auth string) bool {
	return subtle.ConstantTimeCompare([]byte(b.auth), []byte(auth)) == 1
}

// challenge is the upstream's refusal of credentials that came too late for the
// exchange that carried them.
type challenge struct {
	refusal *downstream.Refusal
	auth    string // which were refused
}
