package legacy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
)

func TestBatchIsOneArrayWhenNothingInterrupts_E16(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250326)
	resp := p.post(`[{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":1}},
		{"jsonrpc":"2.0","method":"notifications/initialized"},
		{"jsonrpc":"2.0","id":"1","method":"echo","params":{"b":2}}]`)
	want(t, "type", resp.Header.Get("Content-Type"), "application/json")
	parts, err := jsonrpc.Split([]byte(text(t, resp)), 99)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{string(parts[0]), string(parts[1])}
	slices.Sort(got)
	want(t, "responses", got, []string{`{"jsonrpc":"2.0","id":"1","result":{"b":2}}`, `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`})
	want(t, "notified", b.last().notified, []string{"notifications/initialized"})
}

func TestBatchIsAStreamWhenARequestSpeaks_E15_E16(t *testing.T) {
	b := newFake()
	_, p := serve(t, Options{}, b)
	p.initialize(mcp.V20250326)
	answer := p.async(`[{"jsonrpc":"2.0","id":1,"method":"hold"},{"jsonrpc":"2.0","id":2,"method":"hold"},{"jsonrpc":"2.0","id":3,"method":"hold"}]`)
	calls := map[string]*call{}
	for range 3 {
		k := <-b.held
		calls[string(k.req.ID)] = k
	}
	calls["3"].finish(`{"third":1}`) // waits for the others, then becomes an event
	calls["2"].Send([]byte(note))
	ev := readEvents(t, <-answer)
	want(t, "collected", ev.next(), `1-1|{"jsonrpc":"2.0","id":3,"result":{"third":1}}`)
	want(t, "interim", ev.next(), `1-2|`+note)
	calls["1"].finish(`{"first":1}`)
	want(t, "first", ev.next(), `1-3|{"jsonrpc":"2.0","id":1,"result":{"first":1}}`)
	calls["2"].Abandon()
	want(t, "ends after the last one", len(ev.rest()), 0)
}

func TestBatchRules_E14_A2(t *testing.T) {
	for name, tc := range map[string]struct {
		version  mcp.Version
		body     string
		status   int
		contains string
	}{
		"empty":                        {mcp.V20250326, `[]`, 400, `{"code":-32600,"message":"a batch is an array with at least one message","data":{"bridge":{}}}`},
		"requests and responses":       {mcp.V20250326, `[{"jsonrpc":"2.0","id":1,"method":"echo"},{"jsonrpc":"2.0","id":2,"result":{}}]`, 400, "-32600"},
		"initialize inside (A-2)":      {mcp.V20250326, `[` + initialize(mcp.V20250326) + `]`, 400, "-32600"},
		"too many":                     {mcp.V20250326, `[` + strings.Repeat(`{"jsonrpc":"2.0","method":"a"},`, 5) + `{"jsonrpc":"2.0","method":"a"}]`, 400, `{"code":-32600,"message":"a batch of more than 5 messages is too large (limits.batch)","data":{"bridge":{}}}`},
		"only notifications":           {mcp.V20250326, `[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b"}]`, 202, ""},
		"only responses":               {mcp.V20250326, `[{"jsonrpc":"2.0","id":1,"result":{}}]`, 202, ""},
		"broken member with id":        {mcp.V20250326, `[{"jsonrpc":"2.0","id":9,"method":7}]`, 200, `"id":9`},
		"broken member without id":     {mcp.V20250326, `[7]`, 400, "-32600"},
		"duplicate names":              {mcp.V20250326, `[{"a":1,"a":2}]`, 400, "-32"},
		"not in 2024-11-05":            {mcp.V20241105, `[{"jsonrpc":"2.0","id":1,"method":"echo"}]`, 400, "-32600"},
		"not in 2025-06-18 (E-2)":      {mcp.V20250618, `[{"jsonrpc":"2.0","id":1,"method":"echo"}]`, 400, "-32600"},
		"not in 2025-11-25 (E-2)":      {mcp.V20251125, `[{"jsonrpc":"2.0","id":1,"method":"echo"}]`, 400, "-32600"},
		"a panic fails its own member": {mcp.V20250326, `[{"jsonrpc":"2.0","id":1,"method":"panic"}]`, 200, "-32603"},
	} {
		t.Run(name, func(t *testing.T) {
			_, p := serve(t, Options{MaxBatch: 5}, newFake())
			p.initialize(tc.version)
			status, body := p.call(tc.body)
			want(t, "status", status, tc.status)
			if !strings.Contains(body, tc.contains) {
				t.Errorf("no %s in %s", tc.contains, body)
			}
		})
	}
}

func TestBatchMembersCannotRefuseTheWhole_H3(t *testing.T) {
	_, p := serve(t, Options{}, newFake())
	p.initialize(mcp.V20250326)
	status, body := p.call(`[{"jsonrpc":"2.0","id":1,"method":"refuse"},{"jsonrpc":"2.0","id":2,"method":"echo"}]`)
	want(t, "status", status, 200)
	if !strings.Contains(body, `"id":1`) || !strings.Contains(body, `"id":2`) {
		t.Errorf("body = %s", body)
	}
}

// Over HTTP the response says so. Where messages share a connection nobody but an id tells who waits.
func TestARefusedArrayIsAnsweredForEachRequestThatItShows_E14(t *testing.T) {
	request := func(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"echo"}`, id) }
	response := `{"jsonrpc":"2.0","id":7,"result":{}}`
	filler := strings.Repeat("x", 600)
	for name, tc := range map[string]struct {
		version mcp.Version
		array   string
		why     string
		ids     []int
	}{
		"requests and responses":  {mcp.V20250326, `[` + request(1) + `,` + response + `,` + request(2) + `]`, "must not mix", []int{1, 2}},
		"initialize inside (A-2)": {mcp.V20250326, `[` + initialize(mcp.V20250326) + `,` + request(1) + `]`, "must not be part", []int{0, 1}},
		"what is no message":      {mcp.V20250326, `[1,` + request(1) + `]`, "a message is a JSON object", []int{1}},
		"one too many, of which as many are answered as there may be": {
			mcp.V20250326, `[` + request(1) + `,` + request(2) + `,` + request(3) + `,` + request(4) + `]`, "limits.batch", []int{1, 2, 3},
		},
		"no JSON":              {mcp.V20250326, `[` + request(1) + `,{]`, "-32700", []int{1}},
		"too large":            {mcp.V20250326, `[` + request(1) + `,{"jsonrpc":"2.0","id":2,"method":"echo","params":{"x":"` + filler + `"}}]`, "message is larger", []int{1, 2}},
		"another version":      {mcp.V20250618, `[` + request(1) + `,` + response + `,` + request(2) + `]`, "not part of this protocol version", []int{1, 2}},
		"2024-11-05, too":      {mcp.V20241105, `[` + request(1) + `]`, "not part of this protocol version", []int{1}},
		"another, and no JSON": {mcp.V20250618, `[` + request(1) + `,{]`, "not part of this protocol version", []int{1}},
		// Nobody waits for an answer without an id, and that is no message of these versions (E-32).
		"empty":                   {mcp.V20250326, `[]`, "", nil},
		"nothing but no messages": {mcp.V20250326, `[1]`, "", nil},
		"too many without an id":  {mcp.V20250326, `[` + note + `,` + note + `,` + note + `,` + note + `]`, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				l := serveStdio(t, Options{MaxBatch: 3, MaxBody: 500, Logger: zerolog.New(&log)}, newFake())
				l.initialize(tc.version)
				l.send(tc.array)
				for _, id := range tc.ids {
					if got := l.next(); !strings.HasPrefix(got, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{`, id)) || !strings.Contains(got, tc.why) {
						t.Errorf("for %d: %s", id, got)
					}
				}
				l.send(request(9))
				want(t, "then", l.next(), `{"jsonrpc":"2.0","id":9,"result":{}}`)
				want(t, "the log tells of who was not answered", log.Len() > 0, tc.ids == nil || strings.Count(tc.array, `"method"`) > len(tc.ids))
			})
		})
	}
}

func TestARefusedArrayOverHTTPSSEIsAnsweredOnTheStream_E14_E26(t *testing.T) {
	_, p := serveAll(t, Options{MaxBatch: 1}, newFake())
	_, stream, post := p.openSSE()
	for _, version := range []mcp.Version{mcp.V20241105, mcp.V20250326} {
		post.call(initialize(version))
		stream.next()
		for _, array := range []string{
			`[{"jsonrpc":"2.0","id":1,"method":"echo"},{"jsonrpc":"2.0","id":2,"method":"echo"}]`,
			`[` + initialize(version) + `]`,
		} {
			status, _ := post.call(array)
			want(t, "status", status, 202)
			if got := stream.next(); !strings.Contains(got, `"error":{"code":-32600`) {
				t.Errorf("%s: %s gets %s", version, array, got)
			}
		}
	}
}
