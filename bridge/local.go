package bridge

import (
	"context"

	"github.com/mcpbridge/bridge/bridge/ends"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/fault"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// localMethods is the method table: what is answered here and never forwarded.
// Every other method, known or not, goes up (TRANSLATION B.4).
var localMethods map[string]localMethod

type localMethod func(*conversation, context.Context, downstream.Caller, downstream.Request) ([]byte, *jsonrpc.Error)

func init() {
	localMethods = map[string]localMethod{
		mcp.MethodPing:                 servePing,
		mcp.MethodInitialize:           refuseInitialize,
		mcp.MethodSetLevel:             serveSetLevel,
		mcp.MethodResourcesSubscribe:   serveSubscribe,
		mcp.MethodResourcesUnsubscribe: serveUnsubscribe,
		// Tasks that the bridge hosts, else not declared to clients (G.2, G.3).
		mcp.MethodTasksGet:    serveTasksGet,
		mcp.MethodTasksList:   serveTasksList,
		mcp.MethodTasksCancel: serveTasksCancel,
		mcp.MethodTasksResult: notOffered, // where hosted, Serve has taken it
		// Modern-only methods.
		mcp.MethodDiscover:    notOffered,
		mcp.MethodListen:      notOffered,
		mcp.MethodTasksUpdate: notOffered,
	}
}

// servePing answers at once: the method no longer exists upstream.
func servePing(*conversation, context.Context, downstream.Caller, downstream.Request) ([]byte, *jsonrpc.Error) {
	return emptyObject, nil
}

func refuseInitialize(*conversation, context.Context, downstream.Caller, downstream.Request) ([]byte, *jsonrpc.Error) {
	return nil, fault.Request("this session is already initialized")
}

func notOffered(_ *conversation, _ context.Context, _ downstream.Caller, req downstream.Request) ([]byte, *jsonrpc.Error) {
	return nil, ends.MethodNotFound(req.Method)
}

// serveSetLevel keeps the level for the _meta of later requests (B-6).
func serveSetLevel(c *conversation, _ context.Context, _ downstream.Caller, req downstream.Request) ([]byte, *jsonrpc.Error) {
	if !c.Server.Logging {
		return nil, ends.MethodNotFound(req.Method)
	}
	level, _ := rawjson.Text(req.Level)
	if mcp.Severity(level) < 0 {
		return nil, fault.Params("level must be one of debug, info, notice, warning, error, critical, alert, emergency")
	}
	c.mu.Lock()
	c.setLevelLocked(level)
	c.mu.Unlock()
	c.changed()
	return emptyObject, nil
}
