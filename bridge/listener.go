package bridge

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/bridge/catalog"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

// listener keeps one subscriptions/listen open for as long as its context
// lives: it opens it again with back-off and reports the gap (C-19, C-20).
type listener struct {
	up    upstream.Caller
	log   zerolog.Logger
	call  *upstream.Call
	acked func(filter []byte)          // the acknowledged filter, each time; may be nil
	event func(jsonrpc.Message)        // what was announced
	gap   func()                       // after a re-opened listen was acknowledged
	ended func(err error) (again bool) // decides about an end; nil: always again
}

func (l *listener) run(ctx context.Context) {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 500*time.Millisecond, time.Minute
	opened := false
	for {
		err := l.up.Listen(ctx, l.call, func(msg jsonrpc.Message) {
			if msg.Method != mcp.NotificationAcknowledged {
				l.event(msg)
				return
			}
			wait.Reset()
			if l.acked != nil {
				l.acked(rawjson.Get(msg.Params, "notifications"))
			}
			if opened {
				l.gap()
			}
			opened = true
		})
		// ended first: whoever waits for the first acknowledgment must hear.
		if again := l.ended == nil || l.ended(err); !again || ctx.Err() != nil {
			return
		}
		delay := wait.NextBackOff()
		l.log.Debug().Err(err).Dur("again_in", delay).Msg("a subscription ended; it is opened again")
		if !pauseFor(ctx, delay) {
			return
		}
	}
}

// pauseFor returns false when ctx ended first.
func pauseFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (c *conversation) listenParams(filter []byte) []byte {
	params := rawjson.Apply(nil, emptyObject, rawjson.Edit{Name: "notifications", Value: filter})
	return translate.Params(nil, params, &translate.Envelope{
		Method: mcp.MethodListen, Version: c.server.Version, ClientInfo: c.clientInfo, Capabilities: emptyObject,
	})
}

func listFilterParams(lists catalog.Lists) []byte {
	var edits []rawjson.Edit
	for _, part := range []struct {
		name string
		on   bool
	}{
		{"toolsListChanged", lists.Tools},
		{"promptsListChanged", lists.Prompts},
		{"resourcesListChanged", lists.Resources},
	} {
		if part.on {
			edits = append(edits, rawjson.Edit{Name: part.name, Value: []byte("true")})
		}
	}
	return rawjson.Apply(nil, emptyObject, edits...)
}
