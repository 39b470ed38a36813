package bridge

import (
	"time"

	"github.com/mcpbridge/bridge/ask/model"
	"github.com/mcpbridge/bridge/mcp"
)

// visiting is a conversation as it is to calls of those who may know no more than the session's id:
// how they answer says nothing of its client, and what answering for them costs is not that one's.
// It has no state of its own.
type visiting struct{ *conversation }

// Trust implements call.Session.
func (visiting) Trust(mcp.InputKind) {}

// Distrust implements call.Session.
func (visiting) Distrust(mcp.InputKind, time.Duration) {}

// ShownWrapped implements call.Session: what others are shown is not the client's.
func (visiting) ShownWrapped([]string) {}

// Spent implements call.Session.
func (c visiting) Spent() *model.Spent { return &c.visits }
