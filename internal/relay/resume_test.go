package relay

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/downstream"
)

// moody is a legacy server whose response to a call breaks off behind event c1. What the rest is
// asked with, one after another, gets its moods, and then, or when there are none, the last of them.
type moody struct {
	moods []func() (*http.Response, error)
	began time.Time
	asked []string // "seconds last-event-id"
}

func (s *moody) RoundTrip(req *http.Request) (*http.Response, error) {
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil {
		trace.WroteRequest(httptrace.WroteRequestInfo{})
	}
	text := ""
	if req.Body != nil {
		body, _ := io.ReadAll(req.Body)
		text = string(body)
	}
	switch {
	case strings.Contains(text, `"initialize"`):
		resp, _ := says(200, "application/json", `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}`)()
		resp.Header.Set("Mcp-Session-Id", "s1")
		return resp, nil
	case req.Method == http.MethodPost:
		return says(200, "text/event-stream", "id: c1\nretry: 0\ndata: \n\n")()
	case req.Method == http.MethodDelete:
		return says(200, "", "")()
	}
	s.asked = append(s.asked, time.Since(s.began).String()+" "+req.Header.Get("Last-Event-Id"))
	mood := s.moods[0]
	if len(s.moods) > 1 {
		s.moods = s.moods[1:]
	}
	return mood()
}

// says is a mood in which a server answers; fields are a name and a value.
func says(status int, kind, body string, fields ...string) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		h := http.Header{"Content-Type": {kind}}
		for i := 0; i+1 < len(fields); i += 2 {
			h.Set(fields[i], fields[i+1])
		}
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

// A GET for the rest of a response repeats nothing, and the server may have the result: it is
// tried again, and when it is given up, the error says what is not known.
func TestTheRestOfAResponseIsAskedForAgain_D15(t *testing.T) {
	result := says(200, "text/event-stream", "id: c2\ndata: "+response(`"a"`)+"\n\n")
	ended := says(200, "text/event-stream", ": nothing yet\n\n")
	away := func() (*http.Response, error) { return nil, errors.New("connection refused") }
	const unknown = "may have been done"
	for name, test := range map[string]struct {
		moods []func() (*http.Response, error)
		want  string // of what the call gets
		asked string // the last time
		times [2]int // how often
	}{
		"503 once":     {[]func() (*http.Response, error){says(503, "", ""), result}, response(`"a"`), "150ms c1", [2]int{2, 2}},
		"500 once":     {[]func() (*http.Response, error){says(500, "", ""), result}, response(`"a"`), "150ms c1", [2]int{2, 2}},
		"409 once":     {[]func() (*http.Response, error){says(409, "", ""), result}, response(`"a"`), "150ms c1", [2]int{2, 2}},
		"429, later":   {[]func() (*http.Response, error){says(429, "", "", "Retry-After", "7"), result}, response(`"a"`), "7.05s c1", [2]int{2, 2}},
		"away":         {[]func() (*http.Response, error){away, away, away, away, away, away, away, result}, response(`"a"`), "11.35s c1", [2]int{8, 8}},
		"ends early":   {[]func() (*http.Response, error){ended, ended, ended, ended, ended, ended, result}, response(`"a"`), "6.35s c1", [2]int{7, 7}},
		"without ids":  {[]func() (*http.Response, error){says(200, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n"), result}, response(`"a"`), "150ms c1", [2]int{2, 2}},
		"503 for ever": {[]func() (*http.Response, error){says(503, "", "", "Retry-After", "3600")}, unknown, "2m0.05s c1", [2]int{5, 5}},
		"gone":         {[]func() (*http.Response, error){away}, unknown, "", [2]int{20, 40}},
		"ends always":  {[]func() (*http.Response, error){ended}, unknown, "", [2]int{20, 40}},
		"400":          {[]func() (*http.Response, error){says(400, "", "")}, unknown, "50ms c1", [2]int{1, 1}},
		"401":          {[]func() (*http.Response, error){says(401, "", "")}, unknown, "50ms c1", [2]int{1, 1}},
		"405":          {[]func() (*http.Response, error){says(405, "", "")}, unknown, "50ms c1", [2]int{1, 1}},
		"no stream":    {[]func() (*http.Response, error){says(200, "text/html", "")}, unknown, "50ms c1", [2]int{1, 1}},
		"404":          {[]func() (*http.Response, error){says(404, "", "")}, "whether a call under way was executed is not known", "50ms c1", [2]int{1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &moody{moods: test.moods, began: time.Now()}
				h := NewHTTP(HTTPOptions{URL: &url.URL{Scheme: "http", Host: "server"}, Wrap: func(http.RoundTripper) http.RoundTripper { return s }})
				r := New(Options{Server: h})
				conv, _, err := r.Open(t.Context(), downstream.Caller{}, message(t, initialize), newClient())
				if err != nil {
					t.Fatal(err)
				}
				out := newReply()
				conv.Serve(t.Context(), downstream.Caller{}, downstream.NewRequest(message(t, aCall)), out)
				if got := out.wait(t); !strings.Contains(got, test.want) {
					t.Errorf("the call got %s", got)
				}
				if n := len(s.asked); n < test.times[0] || n > test.times[1] || !strings.HasSuffix(s.asked[n-1], test.asked) {
					t.Errorf("asked %d times: %q", n, s.asked)
				}
				conv.Close(nil)
				r.Close()
			})
		})
	}
}

// The stream of announcements heeds when a busy server wants to be asked again.
func TestTheStreamOfGetIsAskedForWhenTheServerWants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &moody{moods: []func() (*http.Response, error){says(503, "", "", "Retry-After", "20"), says(405, "", "")}, began: time.Now()}
		h := NewHTTP(HTTPOptions{URL: &url.URL{Scheme: "http", Host: "server"}, Wrap: func(http.RoundTripper) http.RoundTripper { return s }})
		line, _ := h.Connect(downstream.Caller{}, &told{})
		line.(*httpLine).listen()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := strings.Join(s.asked, ","); got != "0s ,20s " {
			t.Errorf("asked %q", got)
		}
		line.Close()
	})
}
