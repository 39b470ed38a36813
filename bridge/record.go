package bridge

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/mcpbridge/bridge/bridge/call"
	"github.com/mcpbridge/bridge/bridge/subscriptions"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/mrtr"
	"github.com/mcpbridge/bridge/rawjson"
)

// recordVersion counts the changes of sessionRecord that an older bridge could not
// read. Members may be added without one.
const recordVersion = 1

// sessionRecord is all there is to remember of a conversation between two requests.
// What the server offers is asked anew; whose it is, the transport knows.
type sessionRecord struct {
	V          int                  `json:"v"`
	Version    mcp.Version          `json:"version"` // as negotiated
	ClientInfo []byte               `json:"clientInfo,omitempty"`
	Declared   []byte               `json:"declared,omitempty"` // capabilities
	Level      string               `json:"level,omitempty"`    // of logging/setLevel
	Proven     []string             `json:"proven,omitempty"`   // capabilities that the client has served
	Breaker    map[string]time.Time `json:"breaker,omitempty"`  // until when a capability is not used
	Announced  bool                 `json:"announced,omitempty"`
	Resources  names                `json:"resources,omitempty"` // that it has subscribed to
	Wrapped    names                `json:"wrapped,omitempty"`   // tools that it was shown wrapped, in order
	Served     uint8                `json:"served,omitempty"`    // what earlier versions of the bridge wrote for Proven; only read
}

// names are URIs and names of the server's, each as exact as it was said: encoding/json would take every
// lone surrogate for the same character.
type names []string

// MarshalJSON implements json.Marshaler.
func (n names) MarshalJSON() ([]byte, error) {
	out := []byte{'['}
	for i, name := range n {
		if i > 0 {
			out = append(out, ',')
		}
		out = rawjson.AppendQuote(out, name)
	}
	return append(out, ']'), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *names) UnmarshalJSON(list []byte) error {
	for element := range rawjson.Elements(list) {
		name, _ := rawjson.Name(element)
		*n = append(*n, name)
	}
	return nil
}

// Record implements downstream.Conversation.
func (c *conversation) Record() []byte {
	record, resources := c.snapshot()
	c.breaker.record(record)
	if resources != nil {
		record.Resources = resources.Subscribed()
	}
	stored, err := json.Marshal(record)
	if err != nil {
		panic(err) // nothing in it can fail
	}
	return stored
}

func (c *conversation) snapshot() (*sessionRecord, *subscriptions.Resources) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := c.seldomLocked()
	r := &sessionRecord{
		V: recordVersion, Version: c.Rules.Version, ClientInfo: c.ClientInfo, Declared: c.Declared,
		Level: rest.level, Announced: c.announced, Wrapped: rest.wrapped,
	}
	return r, rest.resources
}

// WantsLogs reports whether the session of a record has asked for log messages.
func WantsLogs(record []byte) bool {
	r, err := readRecord(record)
	return err == nil && r.Level != ""
}

func readRecord(record []byte) (*sessionRecord, error) {
	r := new(sessionRecord)
	if err := json.Unmarshal(record, r); err != nil {
		return nil, fmt.Errorf("%w: its record cannot be read: %w", downstream.ErrGone, err)
	}
	switch {
	case r.V > recordVersion:
		return nil, fmt.Errorf("%w: %w", downstream.ErrGone, mrtr.ErrNewer)
	case r.V < 1 || !r.Version.IsLegacy():
		return nil, fmt.Errorf("%w: its record has no version", downstream.ErrGone)
	}
	for bit, capability := range servedBits {
		if r.Served&(1<<bit) != 0 && !slices.Contains(r.Proven, capability) {
			r.Proven = append(r.Proven, capability)
		}
	}
	return r, nil
}

// servedBits says what the bits of Served meant. It never changes.
var servedBits = [...]string{"elicitation", "sampling", "roots"}

// fill gives the conversation, which nobody knows yet, its memory back.
func (c *conversation) fill(r *sessionRecord) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.declare(r.ClientInfo, r.Declared)
	c.setLevelLocked(r.Level)
	c.rememberWrappedLocked(r.Wrapped)
	c.breaker.adopt(&sessionRecord{}, r)
}

// Flows implements downstream.Conversation.
func (c *conversation) Flows() (records [][]byte) {
	for _, k := range c.table.underWay() {
		if record := k.Record(); record != nil {
			records = append(records, record)
		}
	}
	return records
}

// Resume implements downstream.Conversation.
func (c *conversation) Resume(caller downstream.Caller, record []byte, out downstream.Reply) error {
	return call.Resume(&c.Client, caller, record, out)
}

// GiveUp implements downstream.Conversation.
func (c *conversation) GiveUp(caller downstream.Caller, record []byte) (tell func(), err error) {
	return call.GiveUp(&c.Client, caller, record)
}

// Adopt implements downstream.Conversation: what both sides have changed since before is
// true of both. Of two levels, this side's counts.
func (c *conversation) Adopt(before, theirs []byte) error {
	base, err := readRecord(before)
	if err != nil {
		return err
	}
	other, err := readRecord(theirs)
	if err != nil {
		return err
	}
	c.mu.Lock()
	if c.seldomLocked().level == base.Level {
		c.setLevelLocked(other.Level)
	}
	if slices.Equal(c.seldomLocked().wrapped, base.Wrapped) {
		c.rememberWrappedLocked(other.Wrapped)
	}
	c.mu.Unlock()
	c.breaker.adopt(base, other)
	hearing{c}.adoptResources(base.Resources, other.Resources)
	return nil
}
