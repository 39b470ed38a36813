package streamable

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/buffers"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

// purse is a Held with so many bytes to spend.
type purse struct{ limit, now, most int }

func (p *purse) Set(bytes int) error {
	if bytes > p.limit {
		return budget.ErrShare
	}
	p.now, p.most = bytes, max(p.most, bytes)
	return nil
}

func TestALargeResponseIsChargedWhileItComes(t *testing.T) {
	const size = 1 << 20
	text := strings.Repeat("x", size)
	for name, respond := range map[string]func(w http.ResponseWriter, id string){
		"JSON": func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + id + `,"result":{"text":"` + text + `"}}`))
		},
		"events": func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 3 {
				_, _ = w.Write([]byte(`data: {"jsonrpc":"2.0","method":"n","params":{"text":"` + text + `"}}` + "\n\n"))
			}
			_, _ = w.Write([]byte(`data: {"jsonrpc":"2.0","id":` + id + `,"result":{"text":"` + text + `"}}` + "\n\n"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachTransport(t, func(t *testing.T, opt Options) {
				p := newScripted(t, func(_ int, w http.ResponseWriter, g *got, _ *http.Request) { respond(w, string(g.msg.ID)) })
				c := newClient(t, p.URL, opt)
				rich, poor := &purse{limit: 8 * size}, &purse{limit: size / 2}
				ask := call(mcp.MethodToolsCall, `"name":"t"`)
				ask.Held = rich
				if _, err := c.Do(t.Context(), ask, nil); err != nil || rich.most < size-2*upstream.HeldStep {
					t.Errorf("charged %d bytes: %v", rich.most, err)
				}
				ask.Held = poor
				_, err := c.Do(t.Context(), ask, nil)
				if f, ok := err.(*upstream.Failure); !ok || f.Cause != upstream.NoMemory || !budget.Short(f) || !f.Sent {
					t.Errorf("without the memory: %v", err)
				}
			})
		})
	}
}

func TestWhatAStreamSaysBesidesMessagesIsNotHeld(t *testing.T) {
	const filler, purseful = 4 << 20, 1 << 20
	for name, block := range map[string]string{
		"comments":            strings.Repeat(": "+strings.Repeat("c", 60)+"\n", 512),
		"events without data": strings.Repeat("event: e\nid: "+strings.Repeat("i", 1000)+"\nretry: 1\n\n", 32),
		"empty events":        strings.Repeat("data:\n\n", 4096),
	} {
		t.Run(name, func(t *testing.T) {
			eachTransport(t, func(t *testing.T, opt Options) {
				p := newScripted(t, func(_ int, w http.ResponseWriter, g *got, _ *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					for range filler / len(block) {
						_, _ = w.Write([]byte(block))
					}
					_, _ = w.Write([]byte(`data: {"jsonrpc":"2.0","id":` + string(g.msg.ID) + `,"result":{}}` + "\n\n"))
				})
				ask, held := call(mcp.MethodToolsCall, `"name":"t"`), &purse{limit: purseful}
				ask.Held = held
				if _, err := newClient(t, p.URL, opt).Do(t.Context(), ask, nil); err != nil || held.most > 4*upstream.HeldStep {
					t.Errorf("charged %d bytes: %v", held.most, err)
				}
			})
		})
	}
}

// A buffer is held with all its room, however little of that is used.
func TestTheBufferOfAResponseIsChargedWithItsSize(t *testing.T) {
	const size = 1<<20 + 1 // a byte more than doubling has room for
	held := &purse{limit: 4 * size}
	body, err := readAll(buffers.Get(0), strings.NewReader(strings.Repeat("x", size)), 8*size, held)
	if err != nil || held.now != cap(*body) {
		t.Errorf("%d of %d bytes are charged: %v", held.now, cap(*body), err)
	}
	body, err = readAll(buffers.Get(0), strings.NewReader(strings.Repeat("x", size)), size, nil)
	if err != nil || cap(*body) > size+1 {
		t.Errorf("%d bytes that were announced have %d: %v", size, cap(*body), err)
	}
}

// Reading what a list of tools says about headers takes more than the list, for as long as it is read.
func TestReadingAListOfToolsIsCharged(t *testing.T) {
	list := `{"tools":[{"name":"a","inputSchema":{}}` + strings.Repeat(`,{"name":"a","inputSchema":{}}`, 1<<15) + `]}`
	p := newScripted(t, func(_ int, w http.ResponseWriter, g *got, _ *http.Request) { answer(w, g.msg.ID, list) })
	c, ask := newClient(t, p.URL, Options{}), call(mcp.MethodToolsList, "")
	rich, poor := &purse{limit: 8 * len(list)}, &purse{limit: 3 * len(list) / 2}
	ask.Held = rich
	if ans, err := c.Do(t.Context(), ask, nil); err != nil || rich.most != 2*len(ans.Result) || rich.now != len(ans.Result) {
		t.Errorf("charged %d bytes for %d, then %d: %v", rich.most, len(list), rich.now, err)
	}
	whole := list
	list = `{"tools":[{"name":"a","inputSchema":{}}` + strings.Repeat(`,{"name":"a","inputSchema":{}}`, 1<<11) + `]}` // small, twice of it is not
	few := &purse{limit: 1 << 30}
	ask.Held = few
	if _, err := c.Do(t.Context(), ask, nil); err != nil || few.now > upstream.HeldStep {
		t.Errorf("of %d bytes %d stay charged: %v", len(list), few.now, err)
	}
	list = whole
	ask.Held = poor
	_, err := c.Do(t.Context(), ask, nil)
	if f, ok := err.(*upstream.Failure); !ok || f.Cause != upstream.NoMemory || !budget.Short(f) || !f.Sent {
		t.Errorf("without the memory: %v", err)
	}
}
