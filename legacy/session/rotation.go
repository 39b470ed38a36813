package session

import (
	"crypto/subtle"
	"time"

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
	subject := bearer.Subject(a)
	return subject != "" && subject == bearer.Subject(b)
}

// binding is whose session it is: the credentials and the principal that they stand for.
type binding struct {
	auth, principal string
	n               uint64 // counts the bindings of the session; that of who opened it is 1
}

// by reports whether it is to these credentials.
func (b binding) by(auth string) bool {
	return subtle.ConstantTimeCompare([]byte(b.auth), []byte(auth)) == 1
}

// doubt is a token that the session was not bound to, and until when nobody is asked again.
type doubt struct {
	auth  string
	until time.Time
}

// doubtFor is how long that is: each time costs the server some requests.
const doubtFor = 30 * time.Second

func (d *doubt) of(auth string) bool {
	return d != nil && d.auth == auth && time.Now().Before(d.until)
}
