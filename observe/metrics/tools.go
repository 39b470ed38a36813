package metrics

import (
	"hash/maphash"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/rawjson"
)

// toolNames are the names of tools that have a label of their own: those that the server
// of a mount listed, the first maxTools of them for as long as the process lives, since
// a label that was once there stays. Whatever else clients call counts as _OTHER.
type toolNames struct {
	seed  maphash.Seed
	page  atomic.Uint64 // hash of the list that was read last
	known atomic.Pointer[map[string]string]
	mu    sync.Mutex // held to add some
}

const (
	maxTools    = 200 // of one mount
	maxToolName = 128 // bytes; longer ones count as _OTHER
)

func newToolNames() *toolNames {
	t := &toolNames{seed: maphash.MakeSeed()}
	t.known.Store(&map[string]string{})
	return t
}

// word returns the label for the name of a tool as it stands in a request, as JSON; ""
// for none.
func (t *toolNames) word(raw []byte) string {
	if len(raw) == 0 {
		return ""
	}
	name, _ := rawjson.TextBytes(raw)
	if w, ok := (*t.known.Load())[string(name)]; ok {
		return w
	}
	return other
}

// of returns the label for the tool that a request to the server is about.
func (t *toolNames) of(r *observe.Request) string {
	if r.Method != mcp.MethodToolsCall {
		return ""
	}
	if w := t.word(rawjson.Get(r.Params, "name")); w != "" {
		return w
	}
	return other
}

// learn reads the names of a list of tools, unless it is the one that came last.
func (t *toolNames) learn(r *observe.Request) {
	if r.Method != mcp.MethodToolsList || r.Answer == nil {
		return
	}
	if page := maphash.Bytes(t.seed, r.Answer); t.page.Swap(page) == page {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	more := maps.Clone(*t.known.Load())
	for tool := range rawjson.Elements(rawjson.Get(r.Answer, "tools")) {
		if len(more) >= maxTools {
			break
		}
		if name, ok := rawjson.Text(rawjson.Get(tool, "name")); ok && len(name) <= maxToolName && printable(name) == name {
			more[name] = name
		}
	}
	t.known.Store(&more)
}
