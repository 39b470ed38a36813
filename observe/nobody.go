package observe

import (
	"time"

	"github.com/mcpbridge/bridge/mcp"
)

// Nobody is a Watcher that counts nothing.
type Nobody struct{}

var _ Watcher = Nobody{}

// SessionOpened implements Watcher.
func (Nobody) SessionOpened(string, mcp.Version) {}

// CallEnded implements Watcher.
func (Nobody) CallEnded(CallEnd) {}

// QuestionEnded implements Watcher.
func (Nobody) QuestionEnded(Question) {}

// SessionEnded implements Watcher.
func (Nobody) SessionEnded(Session) {}

// RequestEnded implements Watcher.
func (Nobody) RequestEnded(Request) {}

// Resumed implements Watcher.
func (Nobody) Resumed(Resumption) {}

// Refused implements Watcher.
func (Nobody) Refused(Refusal) {}

// Distrusted implements Watcher.
func (Nobody) Distrusted(Kind) {}

// Modern implements Watcher.
func (Nobody) Modern(string, string) {}

// Repeated implements Watcher.
func (Nobody) Repeated(Repeat) {}

// Lost implements Watcher.
func (Nobody) Lost(mcp.Version, string) {}

// Cached implements Watcher.
func (Nobody) Cached(bool) {}

// Authorized implements Watcher.
func (Nobody) Authorized(string, string) {}

// Overhead implements Watcher.
func (Nobody) Overhead(Phase, time.Duration) {}

// Passed implements Watcher.
func (Nobody) Passed(bool) {}
