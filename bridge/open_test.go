package bridge

import (
	"context"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
)

const offered = `{"supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":60000}`

// open sends an initialize that declares what declared says, in raw JSON members.
func open(b *Bridge, declared string) (*conversation, error) {
	conv, _, err := b.Open(context.Background(), downstream.Caller{}, jsonrpc.Message{
		ID: "1", Method: mcp.MethodInitialize, Params: []byte(`{"protocolVersion":"2025-11-25",` + declared + `}`),
	}, noPush{})
	if err != nil {
		return nil, err
	}
	return conv.(*conversation), nil
}

func TestWhatAClientDeclaresIsBounded(t *testing.T) {
	b := New(Options{
		Upstream: &script{steps: []step{result(offered)}}, Catalog: catalog.New(negotiate.NewProber(negotiate.Options{}), nil), Log: zerolog.Nop(),
	})
	defer b.Close()
	long := strings.Repeat("x", 64<<10)
	for _, declared := range []string{
		`"clientInfo":{"name":"` + long + `"}`,
		`"capabilities":{"experimental":{"` + long + `":{}}}`,
		`"clientInfo":{"name":"` + long[:40<<10] + `"},"capabilities":{"experimental":{"` + long[:30<<10] + `":{}}}`,
	} {
		_, err := open(b, declared)
		refusal, ok := err.(*jsonrpc.Error)
		if !ok || !strings.Contains(refusal.Message, "limits.declaration") || strings.Contains(refusal.Message, "xxx") {
			t.Errorf("%d bytes: %v", len(declared), err)
		}
	}
	if _, err := open(b, `"clientInfo":{"name":"`+long[:60<<10]+`"},"capabilities":{}`); err != nil {
		t.Error(err)
	}
}

func TestSessionsShareWhatTheirClientsDeclare(t *testing.T) {
	b := New(Options{
		Upstream: &script{steps: []step{result(offered)}}, Catalog: catalog.New(negotiate.NewProber(negotiate.Options{}), nil), Log: zerolog.Nop(),
	})
	defer b.Close()
	declared := `"clientInfo":{"name":"` + strings.Repeat("x", 20<<10) + `"},"capabilities":{"experimental":{"` + strings.Repeat("y", 20<<10) + `":{}}}`
	one, err := open(b, declared)
	if err != nil {
		t.Fatal(err)
	}
	two, err := open(b, declared)
	if err != nil {
		t.Fatal(err)
	}
	if &one.ClientInfo[0] != &two.ClientInfo[0] || &one.Capable[0] != &two.Capable[0] {
		t.Error("each session has its own copy")
	}
}

// What a server says of itself is kept by each session: without memory for it there is none, the
// log says so, and an end of the session gives the memory back.
func TestASessionKeepsWhatItsServerSaysOnlyWithMemoryForThat(t *testing.T) {
	memory, log := budget.New(1<<20), new(strings.Builder)
	b := New(Options{
		Upstream: &script{steps: []step{result(offered)}}, Catalog: catalog.New(negotiate.NewProber(negotiate.Options{}), memory.Own()), Log: zerolog.New(log),
	})
	defer b.Close()
	memory.Guest("somebody").Charge(2 << 20)
	if _, err := open(b, `"capabilities":{}`); err == nil || !strings.Contains(err.Error(), "limits.memory") || !strings.Contains(log.String(), "limits.memory") {
		t.Errorf("without memory: %v, and the log says %q", err, log)
	}
	memory.Guest("somebody").Give(2 << 20)
	conv, err := open(b, `"capabilities":{}`)
	if err != nil || memory.Used() == 0 {
		t.Fatalf("%v, %d bytes are charged", err, memory.Used())
	}
	if conv.Close(nil); memory.Used() != 0 {
		t.Errorf("%d bytes are still charged", memory.Used())
	}
}
