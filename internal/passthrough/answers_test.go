package passthrough

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/jsonrpc"
)

// Who has an answer gets no other one under the same id, which may mean another request by then, and a server hears of
// no end of what it has finished.
func TestWhatWasAnsweredIsNotAnsweredAgain(t *testing.T) {
	const (
		answered = "data: {\"jsonrpc\":\"2.0\",\"id\":\"a-1\",\"result\":{}}\n\n"
		half     = "data: {\"jsonrpc\":\"2.0\",\"id\":\"a-1\",\"result\":{}}\n"
		array    = "data: {\"id\":1,\"result\":{}}\n\n"
	)
	for name, tc := range map[string]struct {
		asks, text string
		cancelled  []string // which the server hears of
		told       string   // the last word is about; "": none
	}{
		"an answer":               {asksOne, answered, nil, ""},
		"an answer, and comments": {asksOne, answered + ":\n\n", nil, ""},
		"half an event":           {asksOne, half, []string{`"a-1"`}, `"a-1"`},
		"one of an array":         {asksMore, array, []string{`"2"`}, `"2"`},
		"all of an array":         {asksMore, array + "data: {\"id\":\"2\",\"error\":{}}\n\n", nil, ""},
		"a question with that id": {asksOne, "data: {\"id\":\"a-1\",\"method\":\"ping\"}\n\n", []string{`"a-1"`}, `"a-1"`},
	} {
		for _, modern := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", modern ", modern), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var log bytes.Buffer
					s := &slow{serve: first(streams200+tc.text, silent)}
					rec, aborted, _ := passedTo(s, Options{Log: zerolog.New(&log)}, asking(modern, tc.asks))
					rest := strings.TrimPrefix(rec.Body.String(), tc.text)
					if aborted || rec.Code != http.StatusOK || (rest == "") != (tc.told == "") || !strings.Contains(rest, tc.told) || strings.Count(rest, `"error"`) > 1 {
						t.Errorf("its client is told %q, aborted: %t", rest, aborted)
					}
					if (log.Len() == 0) != (tc.told == "") {
						t.Errorf("the log says %s", &log)
					}
					s.mu.Lock()
					defer s.mu.Unlock()
					if said := s.said[1:]; !modern && (len(said) != len(tc.cancelled) || len(said) > 0 && !strings.Contains(said[0], `"requestId":`+tc.cancelled[0])) {
						t.Errorf("the server hears %q", said)
					}
				})
			})
		}
	}
	rec, aborted := cutOffAt(begins{kind: "text/event-stream", text: answered}, "tools/call", asksOne)
	if aborted || rec.Body.String() != answered {
		t.Errorf("at a stop it is told %q, aborted: %t", rec.Body, aborted)
	}
}

// Responses are found wherever a stream is cut, and nothing else is taken for one.
func TestResponsesAreFoundWhereverAStreamIsCut(t *testing.T) {
	for text, want := range map[string]string{
		"data: {\"id\":1,\"result\":{}}\n\n":                                                  "[1]",
		"data:{\"result\" : {\"id\":2,\"a\":[{\"id\":3}]},\r\ndata: \"id\": 1}\r\n\r\n":       "[1]",
		"event: message\rdata: {\"id\":\"\\\"1\\\\\",\"error\":{}}\r\r":                       `["\"1\\"]`,
		"data: [{\"id\":1,\"result\":{}},{\"method\":\"x\"},{\"result\":1,\"id\":\"1\"}]\n\n": `[1 "1"]`,
		"data: {\"id\":1,\"result\":{}}\n\ndata: {\"id\":1,\"result\":{}}\n\n":                "[1]",
		"data: {\"id\":1,\"result\":{}}\n":                                                    "[]",
		"data: {\"id\":1,\"result\":{}}\r\n":                                                  "[]",
		": data: {\"id\":1,\"result\":{}}\n\n":                                                "[]",
		"data: {\"id\":1,\"method\":\"x\",\"result\":{}}\n\n":                                 "[]",
		"data: {\"id\":1,\"params\":{\"result\":{}}}\n\n":                                     "[]",
		"data: {\"x\":{\"id\":1,\"result\":{}}}\n\n":                                          "[]",
		"data: \"{\\\"id\\\":1,\\\"result\\\":{}}\"\n\n":                                      "[]",
		"data: {\"id\":9,\"result\":{}}\n\n":                                                  "[]",
		"data: {\"id\":1.0,\"result\":{}}\n\n":                                                "[]",
		"data: ]}]{\"id\":1\n\n":                                                              "[]",
	} {
		for cut := range len(text) + 1 {
			of := &passage{in: httptest.NewRequest(http.MethodPost, "/", http.NoBody), asked: &asked{ids: []jsonrpc.ID{"1", `"1"`, "2", "3", `"\"1\\"`}}}
			before := fmt.Sprint(of.asked.ids)
			a := answers{of: of}
			a.in([]byte(text[:cut]))
			a.in([]byte(text[cut:]))
			left := fmt.Sprint(of.asked.ids)
			if got := gone(before, left); got != want {
				t.Errorf("%q cut at %d: %s are answered", text, cut, got)
			}
		}
	}
}

// gone returns what is in one list and not in another one.
func gone(before, after string) string {
	var all []string
	for _, id := range strings.Fields(strings.Trim(before, "[]")) {
		if !strings.Contains(" "+strings.Trim(after, "[]")+" ", " "+id+" ") {
			all = append(all, id)
		}
	}
	return "[" + strings.Join(all, " ") + "]"
}
