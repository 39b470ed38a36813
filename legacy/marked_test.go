package legacy

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/rates"
	"github.com/mcpbridge/bridge/mcp"
)

// malformed is what no message may look like, for clients of a version.
var malformed = map[string]struct {
	version mcp.Version
	text    string
}{
	"no JSON":              {mcp.V20251125, `{"jsonrpc":"2.0","id":5,"method":"x",`},
	"no object":            {mcp.V20251125, `5`},
	"duplicate member":     {mcp.V20251125, `{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":1,"a":2}}`},
	"no version":           {mcp.V20251125, `{"id":5,"method":"ping"}`},
	"bad id":               {mcp.V20251125, `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`},
	"long method":          {mcp.V20251125, `{"jsonrpc":"2.0","id":5,"method":"` + strings.Repeat("m", 300) + `"}`},
	"malformed response":   {mcp.V20251125, `{"jsonrpc":"2.0","id":5,"error":"x"}`},
	"an array now":         {mcp.V20251125, `[{"jsonrpc":"2.0","id":5,"method":"ping"}]`},
	"empty array":          {mcp.V20250326, `[]`},
	"large array":          {mcp.V20250326, `[` + strings.Repeat(`{},`, 64) + `{}]`},
	"array of what is not": {mcp.V20250326, `[{"jsonrpc":"2.0","id":5,"method":7}]`},
}

// Each error of the bridge's own says that it is one, also where a message could not be read.
func TestErrorsAboutMalformedMessagesAreMarkedAsTheBridges_F2(t *testing.T) {
	for name, tc := range malformed {
		t.Run(name, func(t *testing.T) {
			_, p := serve(t, Options{MaxBatch: 64}, newFake())
			p.initialize(tc.version)
			if status, body := p.call(tc.text); !strings.Contains(body, `"data":{"bridge":{`) {
				t.Errorf("HTTP: %d %s", status, body)
			}
			_, p = serveAll(t, Options{MaxBatch: 64}, newFake())
			c, _, err := dial(t, p, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			say(t, c, initialize(tc.version))
			frame(t, c)
			say(t, c, tc.text)
			say(t, c, `{"jsonrpc":"2.0","id":"after","method":"ping"}`)
			for answer := frame(t, c); !strings.Contains(answer, `"after"`); answer = frame(t, c) {
				if !strings.Contains(answer, `"data":{"bridge":{`) {
					t.Errorf("WebSocket: %s", answer)
				}
			}
		})
	}
}

// So are refusals by how fast or how many requests come, over each carrier.
func TestRefusalsOnConnectionsAreMarkedAsTheBridges_F2(t *testing.T) {
	const array = "[" + ping + `,{"jsonrpc":"2.0","id":2,"method":"echo"}` + "]"
	held := `{"jsonrpc":"2.0","id":"held","method":"hold","params":{}}`
	for name, tc := range map[string]struct {
		opt    rates.Options
		before string
	}{
		"too fast":  {rates.Options{Session: rates.Rate{PerSecond: .001, Burst: 1}}, ""},
		"under way": {rates.Options{AtOnce: rates.AtOnce{Address: 1}}, held},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFake()
			_, p := serveAll(t, Options{Rates: rates.New(tc.opt)}, b)
			c, _, err := dial(t, p, http.Header{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			say(t, c, initialize(mcp.V20250326))
			frame(t, c)
			if tc.before != "" {
				say(t, c, tc.before)
				call := <-b.held
				defer call.finish(`{}`)
			}
			say(t, c, array)
			if answer := frame(t, c); !strings.Contains(answer, `"error"`) || strings.Count(answer, `"error"`) != strings.Count(answer, `"data":{"bridge":{`) {
				t.Errorf("got %s", answer)
			}
		})
	}
	l := serveStdio(t, Options{Rates: rates.New(rates.Options{Session: rates.Rate{PerSecond: .001, Burst: 1}})}, newFake())
	l.send(initialize(mcp.V20251125))
	l.next()
	l.send(ping)
	if answer := l.next(); !strings.Contains(answer, `"data":{"bridge":{`) {
		t.Errorf("stdio: %s", answer)
	}
}
