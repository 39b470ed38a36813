package model_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/ask/model"
	"github.com/mcpbridge/bridge/internal/budget"
)

// stub is a strict API: it knows the members of the published references and no
// others, and answers what the test says.
type stub struct {
	t        *testing.T
	path     string
	key      [2]string
	members  string // of a request, separated by blanks
	status   int
	answer   string
	got      map[string]any
	requests int
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests++
	body, _ := io.ReadAll(r.Body)
	s.got = nil
	if err := json.Unmarshal(body, &s.got); err != nil {
		s.t.Errorf("the request is no JSON: %v", err)
	}
	for name := range s.got {
		if !strings.Contains(" "+s.members+" ", " "+name+" ") {
			s.t.Errorf("the API has no member %s", name)
		}
	}
	if r.URL.Path != s.path || r.Header.Get(s.key[0]) != s.key[1] || r.Header.Get("Content-Type") != "application/json" {
		s.t.Errorf("%s %v", r.URL.Path, r.Header)
	}
	if s.status == 0 {
		s.status = http.StatusOK
	}
	w.WriteHeader(s.status)
	_, _ = io.WriteString(w, s.answer)
}

func openAI(t *testing.T, answer string) *stub {
	return &stub{t: t, path: "/v1/chat/completions", key: [2]string{"Authorization", "Bearer k3y"}, answer: answer,
		members: "model messages max_tokens temperature stop tools tool_choice"}
}

func anthropic(t *testing.T, answer string) *stub {
	return &stub{t: t, path: "/v1/messages", key: [2]string{"X-Api-Key", "k3y"}, answer: answer,
		members: "model max_tokens system messages temperature stop_sequences tools tool_choice"}
}

func newModel(t *testing.T, s *stub, change func(*model.Settings)) *model.Model {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	settings := model.Settings{Provider: model.OpenAI, URL: server.URL + "/v1", Model: "small", Key: "k3y", MaxTokens: 1000, Timeout: time.Minute}
	if s.path == "/v1/messages" {
		settings.Provider, settings.URL = model.Anthropic, server.URL
	}
	if change != nil {
		change(&settings)
	}
	m, err := model.New(settings)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func equal(t *testing.T, got any, want string) {
	t.Helper()
	var expected any
	if err := json.Unmarshal([]byte(want), &expected); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, expected) {
		text, _ := json.Marshal(got)
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

// conversation has every kind of content that both APIs know.
const conversation = `{"systemPrompt":"Be brief.","maxTokens":50,"temperature":0,"stopSequences":["END"],
	"tools":[{"name":"add","description":"adds","inputSchema":{"type":"object"}}],"toolChoice":{"mode":"required"},
	"messages":[
		{"role":"user","content":{"type":"text","text":"What is this?"}},
		{"role":"user","content":[{"type":"text","text":"Look"},{"type":"image","data":"AAAA","mimeType":"image/png"}]},
		{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"add","input":{"a":1}}]},
		{"role":"user","content":[{"type":"tool_result","toolUseId":"t1","content":[{"type":"text","text":"2"}]}]}]}`

func TestOpenAI(t *testing.T) {
	s := openAI(t, `{"model":"small-1","choices":[{"message":{"content":"Hi","tool_calls":[{"id":"t2","type":"function","function":{"name":"add","arguments":"{\"a\":2}"}}]},"finish_reason":"tool_calls"}]}`)
	got, err := newModel(t, s, nil).Sample(t.Context(), []byte(conversation), "", nil, new(budget.Hold))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, any(s.got), `{"model":"small","max_tokens":50,"temperature":0,"stop":["END"],"tool_choice":"required",
		"tools":[{"type":"function","function":{"name":"add","description":"adds","parameters":{"type":"object"}}}],
		"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"What is this?"},
			{"role":"user","content":[{"type":"text","text":"Look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},
			{"role":"assistant","tool_calls":[{"id":"t1","type":"function","function":{"name":"add","arguments":"{\"a\":1}"}}]},
			{"role":"tool","tool_call_id":"t1","content":"2"}]}`)
	var result any
	_ = json.Unmarshal(got, &result)
	equal(t, result, `{"role":"assistant","model":"small-1","stopReason":"toolUse",
		"content":[{"type":"text","text":"Hi"},{"type":"tool_use","id":"t2","name":"add","input":{"a":2}}]}`)
}

func TestAnthropic(t *testing.T) {
	s := anthropic(t, `{"model":"small-1","content":[{"type":"text","text":""}],"stop_reason":"max_tokens"}`)
	got, err := newModel(t, s, nil).Sample(t.Context(), []byte(conversation), "", nil, new(budget.Hold))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, any(s.got), `{"model":"small","max_tokens":50,"system":"Be brief.","temperature":0,"stop_sequences":["END"],"tool_choice":{"type":"any"},
		"tools":[{"name":"add","description":"adds","input_schema":{"type":"object"}}],
		"messages":[{"role":"user","content":[{"type":"text","text":"What is this?"}]},
			{"role":"user","content":[{"type":"text","text":"Look"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},
			{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"add","input":{"a":1}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"2"}]}]}]}`)
	var result any
	_ = json.Unmarshal(got, &result)
	equal(t, result, `{"role":"assistant","model":"small-1","stopReason":"maxTokens","content":{"type":"text","text":""}}`)
}

const hello = `{"maxTokens":5000,"modelPreferences":{"hints":[{"name":"unknown"},{"name":"claude-large-4"}]},"messages":[{"role":"user","content":{"type":"text","text":"SECRET"}}]}`

func TestHintsAndBounds(t *testing.T) {
	s := anthropic(t, `{"model":"m","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn"}`)
	m := newModel(t, s, func(s *model.Settings) { s.Models = map[string]string{"large": "big-one", "l": "other"} })
	if _, err := m.Sample(t.Context(), []byte(hello), "", nil, new(budget.Hold)); err != nil {
		t.Fatal(err)
	}
	if s.got["model"] != "big-one" || s.got["max_tokens"] != 1000.0 {
		t.Errorf("model %v, max_tokens %v", s.got["model"], s.got["max_tokens"])
	}
}

// An integer is one however it is spelled, and one that is too large for anything means as many as there may be.
func TestTokensAreWholeNumbersInAnySpelling(t *testing.T) {
	for spelled, want := range map[string]float64{
		"50": 50, "50.0": 50, "5e1": 50, "500E-1": 50, "1e9": 1000, "1000000000.0": 1000, "99999999999999999999": 1000, "1e999": 1000,
		"-1": 1000, "-1e30": 1000, "0": 1000, "null": 1000, "1.5": 0, `"50"`: 0, "true": 0,
	} {
		s := openAI(t, `{"model":"m","choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`)
		_, err := newModel(t, s, nil).Sample(t.Context(), []byte(`{"maxTokens":`+spelled+`,"messages":[{"role":"user","content":{"type":"text","text":"x"}}]}`), "", nil, new(budget.Hold))
		if got, _ := s.got["max_tokens"].(float64); got != want || (err != nil) != (want == 0) {
			t.Errorf("%s: the model may use %v, %v", spelled, got, err)
		}
	}
}

// What says nothing is not passed on, and a request that says nothing at all is not made.
func TestMessagesWithoutContent(t *testing.T) {
	const said, nothing = `{"role":"user","content":{"type":"text","text":"x"}}`, `{"role":"user","content":[]}`
	for _, make := range []func() *stub{
		func() *stub {
			return openAI(t, `{"model":"m","choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`)
		},
		func() *stub {
			return anthropic(t, `{"model":"m","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn"}`)
		},
	} {
		for messages, want := range map[string]int{nothing + "," + said: 1, nothing: 0, "": 0} {
			s := make()
			_, err := newModel(t, s, nil).Sample(t.Context(), []byte(`{"maxTokens":5,"messages":[`+messages+`]}`), "", nil, new(budget.Hold))
			if got, _ := s.got["messages"].([]any); len(got) != want || s.requests != want || (err != nil) != (want == 0) {
				t.Errorf("%s: %v after %d requests, %v", messages, s.got, s.requests, err)
			}
		}
	}
}

func TestBudgets(t *testing.T) {
	s := anthropic(t, `{"model":"m","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn"}`)
	m := newModel(t, s, func(s *model.Settings) { s.PerSession, s.PerDay = 2, 3 })
	var first, second model.Spent
	for i, want := range []struct {
		spent *model.Spent
		names string
	}{{&first, ""}, {&first, ""}, {&first, "sampling.per-session"}, {&second, ""}, {&second, "sampling.per-day"}} {
		_, err := m.Sample(t.Context(), []byte(hello), "", want.spent, new(budget.Hold))
		if (err == nil) != (want.names == "") || err != nil && !strings.Contains(err.Error(), want.names) {
			t.Errorf("request %d: %v", i, err)
		}
	}
	if s.requests != 3 {
		t.Errorf("the API got %d requests", s.requests)
	}
}

// Sessions cost nothing: one address that opened a hundred used up everybody's requests, and
// the operator's money, for a day.
func TestTheLastSamplingRequestsOfADayAreForOthers(t *testing.T) {
	s := anthropic(t, `{"model":"m","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn"}`)
	m := newModel(t, s, func(s *model.Settings) { s.PerSession, s.PerDay = 1, 16 })
	for _, of := range []struct {
		tenant string
		want   int
		says   string
	}{{"stranger", 14, "are for others (sampling.per-day)"}, {"user", 2, "are used up (sampling.per-day)"}, {"late", 0, "are used up (sampling.per-day)"}} {
		for n := 0; ; n++ {
			_, err := m.Sample(t.Context(), []byte(hello), of.tenant, new(model.Spent), new(budget.Hold))
			if err == nil {
				continue
			}
			if n != of.want || !strings.Contains(err.Error(), of.says) {
				t.Errorf("%s: %d requests, then %v", of.tenant, n, err)
			}
			break
		}
	}
}

// What goes wrong is told in words that help, without the API's words, the key or the
// request in them; and nothing is asked twice.
func TestFailures(t *testing.T) {
	for _, test := range []struct {
		status int
		answer string
		want   string
	}{
		{401, `{"error":{"message":"bad key k3y"}}`, "sampling.key-file"},
		{404, "", "sampling.model"},
		{429, "", "quota"},
		{500, "k3y SECRET", "status 500"},
		{302, "", "status 302"},
		{200, "garbage SECRET", "no message"},
		{200, `{}`, "no message"},
		{200, `{"choices":[]}`, "no message"},
		{200, `{"model":"m","choices":[{"message":{"tool_calls":[{"function":{"arguments":"{"}}]}}]}`, "no message"},
		{200, `"` + strings.Repeat("x", 17<<20) + `"`, "too long"},
	} {
		s := openAI(t, test.answer)
		s.status = test.status
		_, err := newModel(t, s, nil).Sample(t.Context(), []byte(hello), "", nil, new(budget.Hold))
		var failure *model.Failure
		if !errors.As(err, &failure) || !strings.Contains(failure.Reason, test.want) || strings.Contains(failure.Reason, "SECRET") || strings.Contains(failure.Reason, "k3y") {
			t.Errorf("%d %.20s: %v", test.status, test.answer, err)
		}
		if s.requests != 1 {
			t.Errorf("%d: asked %d times", test.status, s.requests)
		}
	}
}

func TestUnreachable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	m, err := model.New(model.Settings{Provider: model.OpenAI, URL: server.URL, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Sample(t.Context(), []byte(hello), "", nil, new(budget.Hold)); err == nil || !strings.Contains(err.Error(), "sampling.url") {
		t.Error(err)
	}
}

func TestUnknownContent(t *testing.T) {
	for _, s := range []*stub{openAI(t, ""), anthropic(t, "")} {
		_, err := newModel(t, s, nil).Sample(t.Context(), []byte(`{"maxTokens":1,"messages":[{"role":"user","content":{"type":"video"}}]}`), "", nil, new(budget.Hold))
		if err == nil || !strings.Contains(err.Error(), "video") || s.requests != 0 {
			t.Error(err)
		}
	}
}

// What a tool has answered reaches the model as a whole, or the request fails.
func TestResultsOfTools(t *testing.T) {
	const request = `{"maxTokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","toolUseId":"t","isError":true,"content":[%s]}]}]}`
	const readable = `{"type":"text","text":"a"},{"type":"resource","resource":{"uri":"file:///b","text":"b"}},{"type":"resource_link","name":"c","uri":"file:///c"}`
	chat, messages := openAI(t, `{"model":"m","choices":[{"message":{"content":"ok"}}]}`), anthropic(t, `{"model":"m","content":[{"type":"text","text":"ok"}]}`)
	for _, s := range []*stub{chat, messages} {
		m := newModel(t, s, nil)
		if _, err := m.Sample(t.Context(), fmt.Appendf(nil, request, readable), "", nil, new(budget.Hold)); err != nil {
			t.Error(err)
		}
		for _, kind := range []string{"video", "resource"} {
			_, err := m.Sample(t.Context(), fmt.Appendf(nil, request, `{"type":"`+kind+`","resource":{"uri":"file:///d","blob":"AAAA"}}`), "", nil, new(budget.Hold))
			if err == nil || !strings.Contains(err.Error(), kind) || s.requests != 1 {
				t.Errorf("%s is lost: %v", kind, err)
			}
		}
	}
	if _, err := newModel(t, chat, nil).Sample(t.Context(), fmt.Appendf(nil, request, `{"type":"image","data":"AAAA","mimeType":"image/png"}`), "", nil, new(budget.Hold)); err == nil || !strings.Contains(err.Error(), "image in a tool result") {
		t.Errorf("an image is lost: %v", err)
	}
	if _, err := newModel(t, chat, nil).Sample(t.Context(), fmt.Appendf(nil, request, readable), "", nil, new(budget.Hold)); err != nil {
		t.Error(err)
	}
	equal(t, chat.got["messages"], `[{"role":"tool","tool_call_id":"t","content":"Error: a\nb\nc file:///c"}]`)
	if _, err := newModel(t, messages, nil).Sample(t.Context(), fmt.Appendf(nil, request, readable), "", nil, new(budget.Hold)); err != nil {
		t.Error(err)
	}
	equal(t, messages.got["messages"], `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":[
		{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"text","text":"c file:///c"}]}]}]`)
	preview, err := model.Preview(fmt.Appendf(nil, request, readable+`,{"type":"image","data":"AAAA"}`), new(budget.Hold))
	if err != nil || !strings.Contains(preview, "[result: a\nb\nc file:///c\n[image, 3 bytes]]") {
		t.Errorf("a person sees %q, %v", preview, err)
	}
}

// Some servers leave out the arguments of a tool without parameters, the call's id, who they are, and that they
// stopped for the tool; others write text as a list of parts, and arguments as they are.
func TestServersThatTakeTheAPIAsTheyLike(t *testing.T) {
	s := openAI(t, `{"choices":[{"message":{"content":[{"type":"text","text":"On"},{"type":"text","text":"ce"}],"tool_calls":[
		{"type":"function","function":{"name":"now","arguments":""}},{"type":"function","function":{"name":"add","arguments":{"a":1}}},{"id":"t","function":{"name":"no"}}]},"finish_reason":"stop"}]}`)
	got, err := newModel(t, s, nil).Sample(t.Context(), []byte(hello), "", nil, new(budget.Hold))
	if err != nil {
		t.Fatal(err)
	}
	var result any
	_ = json.Unmarshal(got, &result)
	equal(t, result, `{"role":"assistant","model":"small","stopReason":"toolUse","content":[{"type":"text","text":"Once"},
		{"type":"tool_use","id":"call_0","name":"now","input":{}},{"type":"tool_use","id":"call_1","name":"add","input":{"a":1}},{"type":"tool_use","id":"t","name":"no","input":{}}]}`)
}

func TestUnknownProvider(t *testing.T) {
	if _, err := model.New(model.Settings{Provider: "other"}); err == nil {
		t.Error("no error")
	}
}

func TestSlow(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer server.Close()
	m, err := model.New(model.Settings{Provider: model.OpenAI, URL: server.URL, Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Sample(t.Context(), []byte(hello), "", nil, new(budget.Hold)); err == nil || !strings.Contains(err.Error(), "sampling.timeout") {
		t.Error(err)
	}
}

// What a model's answer takes is charged while it comes, and one without memory is not taken in.
func TestAnswersOfAModelAreCharged(t *testing.T) {
	memory := budget.New(4 << 20)
	held := budget.On(memory.Guest("somebody"))
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"`+strings.Repeat("x", 200<<10)+`"},"finish_reason":"stop"}],"model":"m"}`)
	}))
	defer api.Close()
	m, err := model.New(model.Settings{Provider: model.OpenAI, URL: api.URL, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	answered := 0
	for ; answered < 100 && err == nil; answered++ { // none is done with
		before := memory.Used()
		_, err = m.Sample(t.Context(), []byte(hello), "", nil, &held)
		if took := memory.Used() - before; err == nil && took < 200<<10 {
			t.Fatalf("%d bytes are charged", took)
		}
	}
	if !budget.Short(err) || !strings.Contains(err.Error(), "limits.memory") || answered < 2 {
		t.Errorf("after %d answers: %v", answered, err)
	}
	if held.Release(); memory.Used() != 0 {
		t.Errorf("%d bytes are still charged", memory.Used())
	}
}

// Parts of requests and of answers take a hundred times their text once they are read: they are
// charged by their number.
func TestPartsOfSamplingRequestsAreCharged(t *testing.T) {
	const parts = 100_000
	many := `[` + strings.TrimSuffix(strings.Repeat("{},", parts), ",") + `]`
	for name, tt := range map[string]struct{ request, answer string }{
		"blocks":               {`{"messages":[{"role":"user","content":` + many + `}]}`, ""},
		"blocks of a result":   {`{"messages":[{"role":"user","content":{"type":"tool_result","content":` + many + `}}]}`, ""},
		"messages":             {`{"Messages":` + many + `}`, ""},
		"tools":                {`{"messages":[],"tools":` + many + `}`, ""},
		"blocks in themselves": {`{"messages":[` + strings.TrimSuffix(strings.Repeat(strings.Repeat(`{"content":[`, 100)+strings.Repeat(`]}`, 100)+`,`, parts/100), ",") + `]}`, ""},
		"calls of an answer":   {hello, `{"model":"m","choices":[{"message":{"tool_calls":` + many + `}}]}`},
		"choices":              {hello, `{"model":"m","choices":` + many + `}`},
	} {
		memory := budget.New(1 << 30)
		held := budget.On(memory.Guest("somebody"))
		api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, tt.answer) }))
		m, err := model.New(model.Settings{Provider: model.OpenAI, URL: api.URL, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = m.Sample(t.Context(), []byte(tt.request), "", nil, &held)
		if took := memory.Used(); took < parts*400 {
			t.Errorf("%s: %d bytes are charged", name, took)
		}
		held.Release()
		api.Close()
	}
}
