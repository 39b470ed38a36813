package session

import (
	"github.com/mcpbridge/bridge/internal/bearer"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

// rotatedMay reports whether a message is safe with unproven credentials: the
// upstream is asked about each call, and the conversation tells whose questions
// and cancellations are whose. What the bridge serves by itself is not (H-9).
func rotatedMay(msg *jsonrpc.Message) bool {
	return msg.Kind() != jsonrpc.Request || msg.Method == mcp.MethodToolsCall || mcp.IsReadOnly(msg.Method)
}

// sameSubject reports whether two Authorization headers carry JSON web tokens
// that claim the same issuer and subject. The claims are not verified here.
func sameSubject(a, b string) bool {
	subject := subjectOf(a)
	return subject != "" && subject == subjectOf(b)
}

// subjectOf returns issuer and subject of a JSON web token; "" for anything else.
func subjectOf(auth string) string {
	claims := bearer.Claims(auth)
	issuer, subject := textIn(claims, "iss"), textIn(claims, "sub")
	if issuer == "" || subject == "" {
		return ""
	}
	return issuer + "\x00" + subject
}
