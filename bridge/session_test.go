package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// inquirer is a server whose tool asks what its name says, if the client can be asked that.
// It notes what it is told of the session.
type inquirer struct {
	mu   sync.Mutex
	told string // with the last call
}

const offeredByInquirer = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{}},"ttlMs":0,"cacheScope":"private"}`

// inquiries are method and params of each question that it can ask.
var inquiries = map[string]string{
	"elicitation": `"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}`,
	"sampling":    `"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"t"}}],"maxTokens":1}`,
	"roots":       `"roots/list"`,
}

func (i *inquirer) Do(_ context.Context, call *upstream.Call, _ func(jsonrpc.Message)) (*upstream.Answer, error) {
	if call.Method == mcp.MethodDiscover {
		return &upstream.Answer{Result: []byte(offeredByInquirer)}, nil
	}
	meta := rawjson.Get(call.Params, "_meta")
	i.mu.Lock()
	i.told = string(meta)
	i.mu.Unlock()
	kind, _ := rawjson.Text(rawjson.Get(call.Params, "name"))
	declared := rawjson.Get(rawjson.Get(meta, "io.modelcontextprotocol/clientCapabilities"), kind)
	if declared == nil || rawjson.Get(call.Params, "inputResponses") != nil {
		return &upstream.Answer{Result: []byte(booked)}, nil
	}
	return &upstream.Answer{Result: []byte(`{"resultType":"input_required","inputRequests":{"q":{"method":` + inquiries[kind] + `}},"requestState":"s"}`)}, nil
}

func (i *inquirer) Listen(ctx context.Context, call *upstream.Call, notify func(jsonrpc.Message)) error {
	notify(jsonrpc.Message{Method: mcp.NotificationAcknowledged, Params: []byte(`{"notifications":` + member(call, "notifications") + `}`)})
	<-ctx.Done()
	return ctx.Err()
}

func (i *inquirer) Close() error { return nil }

// sojourn is a session that may go on in another process before each event.
type sojourn struct {
	t      *testing.T
	server *inquirer
	conv   downstream.Conversation
	calls  int
}

func (s *sojourn) process() *Bridge {
	b := New(Options{Upstream: s.server, Catalog: catalog.New(negotiate.NewProber(negotiate.Options{}), nil), Log: zerolog.Nop()})
	s.t.Cleanup(b.Close)
	return b
}

func begin(t *testing.T, params string) *sojourn {
	s := &sojourn{t: t, server: &inquirer{}}
	conv, _, err := s.process().Open(t.Context(), downstream.Caller{}, jsonrpc.Message{ID: "0", Method: mcp.MethodInitialize, Params: []byte(params)}, noPush{})
	if err != nil {
		t.Fatal(err)
	}
	s.conv = conv
	return s
}

// move has the session go on in a process that knows only its record.
func (s *sojourn) move() {
	record := s.conv.Record()
	s.conv.Close(nil)
	conv, err := s.process().Restore(s.t.Context(), downstream.Caller{}, downstream.Caller{}, record, noPush{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.conv = conv
	synctest.Wait()
}

func (s *sojourn) ask(method, params string) *client {
	s.calls++
	return requestOn(&client{t: s.t, conv: s.conv.(*conversation)}, fmt.Sprint(s.calls), method, params)
}

// settle answers or refuses the question of a call, or leaves it alone.
func (s *sojourn) settle(c *client, kind, answer string) {
	switch answer {
	case "refused":
		c.refuseToAnswer(0, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no"})
	case "accepted":
		c.answer(0, map[string]string{
			"elicitation": `{"action":"accept","content":{}}`, "roots": `{"roots":[]}`, "sampling": `{"role":"assistant","content":{"type":"text","text":"t"},"model":"m"}`,
		}[kind])
	}
}

// known is all that is remembered, in an order that means nothing.
func (s *sojourn) known() (r sessionRecord) {
	if err := json.Unmarshal(s.conv.Record(), &r); err != nil {
		s.t.Fatal(err)
	}
	slices.Sort(r.Resources)
	for kind, until := range r.Breaker {
		r.Breaker[kind] = until.UTC().Round(0)
	}
	return r
}

// A session that is stored and read before every event does, and tells the server, what one
// does that never left its process.
func TestASessionIsItsRecord(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			pick := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(r, what) }
			params := fmt.Sprintf(`{"protocolVersion":%q,"clientInfo":{"name":%q,"version":"1"},"capabilities":%s}`,
				pick("version", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"), pick("name", "a", "é\u2028"),
				pick("declared", `{}`, `{"elicitation":{},"roots":{"listChanged":true}}`, `{"elicitation":{"form":{}},"sampling":{},"roots":{},"experimental":{"x":1}}`))
			stays, moves := begin(t, params), begin(t, params)
			both := [...]*sojourn{stays, moves}
			for step := range rapid.IntRange(1, 12).Draw(r, "steps") {
				moves.move()
				what, uri, level := pick("what", "initialized", "level", "subscribe", "unsubscribe", "call", "call", "time"), pick("uri", "file:///a", "file:///b"), pick("level", "debug", "error")
				kind, answer := pick("kind", "elicitation", "sampling", "roots"), pick("answer", "accepted", "refused", "none")
				var calls [2]*client
				for i, s := range both {
					switch what {
					case "initialized":
						s.conv.Notify(downstream.Caller{}, jsonrpc.Message{Method: mcp.NotificationInitialized})
					case "level":
						s.ask(mcp.MethodSetLevel, `{"level":"`+level+`"}`)
					case "subscribe":
						s.ask(mcp.MethodResourcesSubscribe, `{"uri":"`+uri+`"}`)
					case "unsubscribe":
						s.ask(mcp.MethodResourcesUnsubscribe, `{"uri":"`+uri+`"}`)
					case "call":
						calls[i] = s.ask(mcp.MethodToolsCall, `{"name":"`+kind+`"}`)
						if len(calls[i].asked()) > 0 {
							s.settle(calls[i], kind, answer)
						}
					case "time":
					}
					synctest.Wait()
				}
				if what == "time" || what == "call" && answer == "none" {
					pass(20 * time.Minute) // longer than a question waits
				}
				a, b := stays.known(), moves.known()
				a.Announced = b.Announced // whoever comes back has begun
				if !reflect.DeepEqual(a, b) || stays.server.told != moves.server.told {
					t.Fatalf("step %d, %s:\n%+v\n%+v\ntold %s\nand  %s", step, what, a, b, stays.server.told, moves.server.told)
				}
				if what == "call" && (len(calls[0].asked()) != len(calls[1].asked()) || calls[0].result() != calls[1].result()) {
					t.Fatalf("step %d: asked %d and %d", step, len(calls[0].asked()), len(calls[1].asked()))
				}
			}
		})
	})
}
