package tap

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/observe/record"
	"github.com/mcpbridge/bridge/observe/report"
)

// handing is a backend that hands everything to a server of the client's own era.
type handing struct{ downstream.Backend }

func (h handing) Relayer() downstream.Relayer { return h }

func (handing) Relay(*http.Request, *jsonrpc.Message, func() downstream.Caller) http.Handler {
	return http.NotFoundHandler()
}

// TestRelayedClientsAreInTheReport: as ones that could go direct, once for each session.
func TestRelayedClientsAreInTheReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	book, err := report.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	hub := NewHub(record.NewRedactor(false))
	hub.Count(book)
	relayer := hub.Mount("/mcp", observe.Server{}).Backend(handing{}, observe.Nobody{}).Relayer()
	for _, msg := range []*jsonrpc.Message{
		{ID: "1", Method: mcp.MethodInitialize, Params: []byte(`{"protocolVersion":"2025-06-18","clientInfo":{"name":"c","version":"2"}}`)},
		{ID: "2", Method: mcp.MethodToolsCall, Params: []byte(`{}`)}, nil,
	} {
		if relayer.Relay(nil, msg, nil) == nil {
			t.Error("it is not handed on")
		}
	}
	if err := book.Save(); err != nil {
		t.Fatal(err)
	}
	was, err := report.Read(file)
	if err != nil || len(was.Clients) != 1 {
		t.Fatalf("%+v %v", was, err)
	}
	if c := was.Clients[0]; c.Name != "c" || c.Version != "2" || c.Revision != "2025-06-18" || !c.Relayed || c.Sessions != 1 {
		t.Errorf("%+v", c)
	}
}
