package bridge

import (
	"errors"
	"fmt"

	"github.com/mcpbridge/bridge/bridge/ends"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

// refuse converts the failure of a discover for the initialize answer.
func (b *Bridge) refuse(err error) error {
	var failure *upstream.Failure
	if !errors.As(err, &failure) {
		return fault.Internal(err.Error())
	}
	b.notices.unserved.Warn().Str(logfield.Method, mcp.MethodInitialize).Err(err).Msg("the upstream cannot serve a new session")
	if failure.Cause == upstream.Unauthorized {
		return ends.RefusalOf(failure)
	}
	return ends.Describe(failure)
}

// tooMuchDeclared refuses an initialize whose text a session would keep.
func tooMuchDeclared(size, limit int) *jsonrpc.Error {
	return fault.Params(fmt.Sprintf("clientInfo, capabilities and Authorization have %d bytes together; the limit is %d (limits.declaration)", size, limit),
		fault.Limit("limits.declaration"))
}
