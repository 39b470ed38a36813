package bridge

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// counting is a server whose calls say by themselves how often they ask, and after which
// answer the connection is lost. It counts what it executes.
type counting struct {
	announcerless
	mu       sync.Mutex
	executed map[string]int // by key and round
}

type announcerless struct{}

func (s *counting) Do(_ context.Context, call *upstream.Call, _ func(jsonrpc.Message)) (*upstream.Answer, error) {
	if call.Method != mcp.MethodToolsCall {
		return &upstream.Answer{Result: []byte(`{"resultType":"complete","tools":[]}`)}, nil
	}
	var key string
	var asks, loses, round int
	args, _ := rawjson.Text(rawjson.Get(rawjson.Get(call.Params, "arguments"), "plan"))
	_, _ = fmt.Sscan(args, &key, &asks, &loses)
	if state, ok := rawjson.Text(rawjson.Get(call.Params, "requestState")); ok {
		_, _ = fmt.Sscan(state, &round)
	}
	s.mu.Lock()
	s.executed[fmt.Sprint(key, " ", round)]++
	s.mu.Unlock()
	switch {
	case round == loses:
		return nil, &upstream.Failure{Cause: upstream.Lost, Sent: true, Detail: key}
	case round < asks:
		return &upstream.Answer{Result: fmt.Appendf(nil, `{"resultType":"input_required","requestState":"%d","inputRequests":{"q":{"method":"elicitation/create",`+
			`"params":{"message":"%s","requestedSchema":{"type":"object","properties":{"k":{"type":"string"}}}}}}}`, round+1, key)}, nil
	}
	return &upstream.Answer{Result: fmt.Appendf(nil, `{"resultType":"complete","content":[{"type":"text","text":"%s"}]}`, key)}, nil
}

func (s *counting) ran(key string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for round, times := range s.executed {
		if strings.HasPrefix(round, key+" ") {
			n += times
		}
	}
	return n
}
