package dialect_test

import (
	"testing"

	"github.com/mcpbridge/bridge/internal/dialect"
	"github.com/mcpbridge/bridge/mcp"
)

const extension = `{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`

// TestI10TaskStateIsEchoed: the handle is nested, as in the first draft of the
// extension, and each answer about the task has another state, or none.
func TestI10TaskStateIsEchoed(t *testing.T) {
	srv := newServer(t, script{
		mcp.MethodDiscover:  {discovered("2026-06-30", extension)},
		mcp.MethodToolsCall: {result(`{"resultType":"task","task":{"taskId":"t","status":"working","ttl":60,"pollInterval":100,"requestState":"s1"}}`)},
		mcp.MethodTasksGet: {
			result(`{"resultType":"task","taskId":"t","status":"working","pollIntervalMilliseconds":100,"ttlSeconds":60,"requestState":"s2"}`),
			result(`{"taskId":"t","status":"input_required","pollIntervalMs":100,"requestState":"s3","inputRequests":{"a":` + form + `}}`),
			result(`{"taskId":"t","status":"working","pollInterval":100}`),
			result(`{"taskId":"t","status":"completed","result":{"result_type":"complete","content":[{"type":"text","text":"Hello Ada"}]}}`),
		},
		mcp.MethodTasksUpdate: {result(`{}`)},
	})
	x := connect(t, srv, dialect.Options{}).call(mcp.MethodToolsCall, sayHello, agree)
	want(t, "answer", string(x.response.Result), hello)
	want(t, "asked", x.names(), "elicitation/create")
	polls := srv.all(mcp.MethodTasksGet)
	for i, state := range []string{`"s1"`, `"s2"`} {
		want(t, "state of a poll", polls[i].member("requestState"), state)
	}
	want(t, "state of the last poll", polls[len(polls)-1].member("requestState"), "")
	updates := srv.all(mcp.MethodTasksUpdate)
	if len(updates) != 1 {
		t.Fatalf("%d updates", len(updates))
	}
	want(t, "answers", updates[0].member("inputResponses"), `{"a":`+ada+`}`)
	want(t, "state of the update", updates[0].member("requestState"), `"s3"`)
}

// TestG15FinalTasksCarryNoState: what a final server puts there is not echoed.
func TestG15FinalTasksCarryNoState(t *testing.T) {
	srv := newServer(t, script{
		mcp.MethodDiscover:  {result(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":` + extension + `}`)},
		mcp.MethodToolsCall: {result(`{"resultType":"task","taskId":"t","status":"working","pollIntervalMs":100,"requestState":"s"}`)},
		mcp.MethodTasksGet:  {result(`{"resultType":"complete","taskId":"t","status":"completed","result":` + hello + `}`)},
	})
	x := connect(t, srv, dialect.Options{}).call(mcp.MethodToolsCall, sayHello, agree)
	want(t, "answer", string(x.response.Result), hello)
	want(t, "requestState", srv.all(mcp.MethodTasksGet)[0].member("requestState"), "")
}

// TestI14TasksInTheCore: SEP-2322's persistent tools.
func TestI14TasksInTheCore(t *testing.T) {
	const bare = `"taskId":"t","pollInterval":100`
	srv := newServer(t, script{
		mcp.MethodDiscover:  {discovered("DRAFT-2026-v1", `{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}`)},
		mcp.MethodToolsCall: {result(`{"task":{"status":"working",` + bare + `}}`)},
		mcp.MethodTasksGet: {
			result(`{"status":"input_required",` + bare + `}`),
			result(`{"status":"input_required",` + bare + `}`), // not yet up to date (G-7)
			result(`{"status":"working",` + bare + `}`),
			result(`{"status":"completed",` + bare + `}`),
		},
		mcp.MethodTasksResult: {
			result(`{"inputRequests":{"a":` + form + `}}`),
			result(`{"inputRequests":{"a":` + form + `}}`),
			result(`{"content":[{"type":"text","text":"Hello Ada"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}`),
		},
		"tasks/input_response": {result(`{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}`)},
	})
	x := connect(t, srv, dialect.Options{}).call(mcp.MethodToolsCall, sayHello, agree)
	want(t, "answer", string(x.response.Result), hello)
	want(t, "asked", x.names(), "elicitation/create")
	responses := srv.all("tasks/input_response")
	if len(responses) != 1 || len(srv.all(mcp.MethodTasksUpdate)) != 0 {
		t.Fatalf("requests: %s", srv.methods())
	}
	want(t, "answers", responses[0].member("inputResponses"), `{"a":`+ada+`}`)
	want(t, "task", responses[0].member("_meta", mcp.MetaRelatedTask), `{"taskId":"t"}`)
	want(t, "no taskId", responses[0].member("taskId"), "")
	want(t, "Mcp-Method", responses[0].header.Get(mcp.HeaderMethod), "tasks/input_response")
}

// TestI14FailuresAreFetched: the core's failed counts tool errors too.
func TestI14FailuresAreFetched(t *testing.T) {
	for name, tt := range map[string]struct {
		payload reply
		result  string
		code    int
	}{
		"a tool error":     {result(`{"content":[],"isError":true}`), `{"content":[],"isError":true}`, 0},
		"a protocol error": {refuse(200, -32602, "no such city", ""), "", -32602},
	} {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t, script{
				mcp.MethodDiscover:    {discovered("2026-06-30", extension)},
				mcp.MethodToolsCall:   {result(`{"resultType":"task","task":{"taskId":"t","status":"working","pollInterval":100}}`)},
				mcp.MethodTasksGet:    {result(`{"taskId":"t","status":"failed"}`)},
				mcp.MethodTasksResult: {tt.payload},
			})
			x := connect(t, srv, dialect.Options{}).call(mcp.MethodToolsCall, sayHello, agree)
			if tt.code != 0 {
				if x.response.Error == nil || x.response.Error.Code != tt.code {
					t.Fatalf("%+v", x.response)
				}
				return
			}
			want(t, "answer", string(x.response.Result), tt.result)
		})
	}
}
