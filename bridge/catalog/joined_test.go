package catalog

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
)

// What a server says of itself to each client in other words is charged for as long as there is a
// session that keeps it, and once for all who were told the same.
func TestWhatSessionsKeepOfServersIsChargedOnce(t *testing.T) {
	memory := budget.New(8 << 20)
	c := New(nil, memory.Own())
	words := func(i int) *Server {
		return &Server{Discover: fmt.Appendf(nil, `{"x":"%d%s"}`, i, strings.Repeat("x", 200<<10))}
	}
	first, err := c.Join(words(1))
	again, err2 := c.Join(words(1))
	if err != nil || err2 != nil || first != again || memory.Used() != int64(costOf(first)) {
		t.Errorf("two who were told the same: %v, %v, %d bytes are charged", err, err2, memory.Used())
	}
	kept := []*Server{first, again}
	for i := 2; err == nil && i < 100; i++ {
		var s *Server
		if s, err = c.Join(words(i)); err == nil {
			kept = append(kept, s)
		}
	}
	if !budget.Short(err) || len(kept) < 3 {
		t.Errorf("after %d: %v", len(kept), err)
	}
	for _, s := range kept {
		c.Leave(s)
	}
	if memory.Used() != 0 || len(c.joined.known) != 0 {
		t.Errorf("%d bytes are still charged", memory.Used())
	}
}

// What is kept for all is charged, and not kept where there is no memory.
func TestWhatIsKeptForAllIsCharged(t *testing.T) {
	memory := budget.New(4 << 20)
	c := New(negotiate.NewProber(negotiate.Options{}), memory.Own())
	keep := func(uri string) {
		req := &downstream.Request{}
		req.Method, req.URI = mcp.MethodResourcesRead, []byte(`"`+uri+`"`)
		_, slot := c.Lookup("", nil, req, nil)
		slot.Keep(fmt.Appendf(nil, `{"ttlMs":60000,"cacheScope":"public","x":"%s"}`, bytes.Repeat([]byte("x"), 500<<10)))
	}
	for i := range 20 {
		keep(fmt.Sprintf("x:%d", i))
	}
	if used := memory.Used(); used < 500<<10 || used > 2<<20 {
		t.Errorf("%d bytes are charged for results", used)
	}
	c.Invalidate(mcp.NotificationResourcesUpdated, []byte(`{"uri":"x:0"}`))
	before := memory.Used()
	keep("x:0")
	if before >= memory.Used() {
		t.Errorf("%d bytes were charged, and %d with one more", before, memory.Used())
	}
	for i := range 20 {
		c.lists.about(mcp.MethodToolsList, fmt.Appendf(nil, `{"tools":[],"x":"%d%s"}`, i, strings.Repeat("x", 100<<10)))
	}
	if used := memory.Used(); used > 3<<20 || c.lists.bytes > 1<<20 {
		t.Errorf("%d bytes are charged with lists, of which there are %d", used, c.lists.bytes)
	}
}
