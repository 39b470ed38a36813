package mount

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
	"github.com/mcpbridge/bridge/upstream/streamable"
)

// announcer is a server that announces changes of its tools, and counts who listens.
type announcer struct{ listens atomic.Int32 }

func (a *announcer) Do(context.Context, *upstream.Call, func(jsonrpc.Message)) (*upstream.Answer, error) {
	return &upstream.Answer{Result: []byte(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}`)}, nil
}

func (a *announcer) Listen(ctx context.Context, _ *upstream.Call, _ func(jsonrpc.Message)) error {
	a.listens.Add(1)
	<-ctx.Done()
	return ctx.Err()
}

func (a *announcer) Close() error { return nil }

type nowhere struct{ downstream.Pusher }

func (nowhere) Reaches() bool { return true }

// A token that the server never sees tells it nothing: whoever makes up one after the
// other must not open as many subscriptions there.
func TestClientsWhoseCredentialsAreDroppedOrReplacedShareASubscription(t *testing.T) {
	for name, tt := range map[string]struct {
		opt     Options
		listens int32
	}{
		"relayed":  {Options{}, 3},
		"dropped":  {Options{DropAuthorization: true}, 1},
		"replaced": {Options{Upstream: streamable.Options{Header: http.Header{"Authorization": {"Bearer own"}}}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			server := &announcer{}
			tt.opt.Caller = server
			tt.opt.Bridge.Log = zerolog.Nop()
			m, err := New(tt.opt)
			if err != nil {
				t.Fatal(err)
			}
			for _, token := range []string{"a", "b", "c"} {
				caller := downstream.Caller{Principal: token, Authorization: "Bearer " + token}
				conv, _, err := m.Bridge.Open(t.Context(), caller, jsonrpc.Message{
					ID: "1", Method: mcp.MethodInitialize, Params: []byte(`{"protocolVersion":"2025-11-25","capabilities":{}}`),
				}, nowhere{})
				if err != nil {
					t.Fatal(err)
				}
				conv.Notify(caller, jsonrpc.Message{Method: mcp.NotificationInitialized})
			}
			m.Close()
			if got := server.listens.Load(); got != tt.listens {
				t.Errorf("%d subscriptions, want %d", got, tt.listens)
			}
		})
	}
}
