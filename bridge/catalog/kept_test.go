package catalog

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/mcp"
)

func TestWhatIsKeptHasAnAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, began := fresh(), time.Now()
		ask(c, "alice", requestOf(mcp.MethodToolsList, `{}`), listed)
		time.Sleep(10 * time.Second)
		ask(c, "bob", requestOf(mcp.MethodToolsList, `{}`), listed)
		kept := c.Cached()
		if len(kept) != 1 {
			t.Fatalf("%+v", kept)
		}
		k := kept[0]
		if k.Method != mcp.MethodToolsList || k.Results != 2 || k.Bytes < 2*len(listed) ||
			!k.Oldest.Equal(began) || !k.Newest.Equal(began.Add(10*time.Second)) || !k.Until.Equal(began.Add(70*time.Second)) {
			t.Errorf("%+v", k)
		}
		time.Sleep(2 * time.Minute)
		if kept := c.Cached(); kept != nil {
			t.Errorf("kept after its time: %+v", kept)
		}
	})
}
