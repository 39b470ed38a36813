package view

import (
	"io"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/observe/record"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// ago is a call that has waited for so long, and may wait as long again.
func ago(d time.Duration, waits observe.Wait, questions ...observe.Open) observe.Flow {
	return observe.Flow{ID: "f1", Method: mcp.MethodToolsCall, Name: "book", Waits: waits, Began: now.Add(-d), Since: now.Add(-d),
		Until: now.Add(d), Deadline: now.Add(time.Hour), Reachable: true, StateMost: 10, StateCap: "limits.state-only-rounds", Questions: questions}
}

func asked(kind observe.Kind, proven bool) observe.Open {
	return observe.Open{Kind: kind, Asked: true, Proven: proven}
}

func TestItSaysWhyACallHangs(t *testing.T) {
	read := []observe.Stream{{ID: 1, Attached: true}}
	circling := ago(time.Second, observe.ForTime)
	circling.StateOnly = 4
	circlingNow := ago(time.Second, observe.ForServer)
	circlingNow.StateOnly = 4
	deserted := ago(time.Minute, observe.ForServer)
	deserted.Reachable = false
	later := ago(time.Minute, observe.ForServer)
	later.Round = 2
	for name, tc := range map[string]struct {
		flow    observe.Flow
		streams []observe.Stream
		who     string
		grave   bool
		says    string
	}{
		"a person decides":      {ago(time.Hour, observe.ForClient, asked(observe.Form, true)), read, "person", false, "answered questions before"},
		"a person at a page":    {ago(time.Hour, observe.ForClient, asked(observe.URL, true)), read, "person", false, "was asked to visit a page"},
		"a question just asked": {ago(5*time.Second, observe.ForClient, asked(observe.Form, false)), read, "person", false, "has not answered a question yet"},
		"never an answer":       {ago(time.Minute, observe.ForClient, asked(observe.Form, false)), read, "client", true, "has never answered such a question"},
		"the client's model":    {ago(time.Minute, observe.ForClient, asked(observe.Sampling, true)), read, "client", false, "the client's model"},
		"the second question": {ago(time.Hour, observe.ForClient, observe.Open{Asked: true, Answered: true}, asked(observe.Roots, true)), read,
			"client", false, "list of roots"},
		"the stream is lost":    {ago(time.Minute, observe.ForClient, asked(observe.Form, true)), []observe.Stream{{ID: 1}}, "client", true, "lost the stream"},
		"an older stream ended": {ago(time.Minute, observe.ForClient, asked(observe.Form, true)), []observe.Stream{{ID: 1, Ended: true}, {ID: 2, Attached: true}}, "person", false, "a person"},
		"a server at work":      {ago(time.Second, observe.ForServer), read, "server", false, "With the server"},
		"a silent server":       {ago(time.Minute, observe.ForServer), read, "server", true, "silent for 60 s: no answer"},
		"a silent third round":  {later, read, "server", true, "in round 3"},
		"a state-only circle":   {circling, read, "server", true, "4 of 10 times"},
		"in the circle":         {circlingNow, read, "server", true, "4 of 10 times"},
		"a task":                {ago(time.Minute, observe.ForTask), read, "server", false, "made a task"},
		"nobody is there":       {deserted, nil, "client", true, "has gone"},
	} {
		got := ofFlow(&tc.flow, &observe.Sight{Transport: observe.StreamableHTTP, Streams: tc.streams}, now)
		if got.Who != tc.who || got.Grave != tc.grave || !strings.Contains(got.Text, tc.says) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestItSaysWhatASessionHasNotGot(t *testing.T) {
	for name, tc := range map[string]struct {
		sight observe.Sight
		says  string
	}{
		"unfetched": {observe.Sight{Streams: []observe.Stream{{ID: 3, Ended: true, Missing: 2}}}, "stream 3 holds 2 events"},
		"fetched":   {observe.Sight{Streams: []observe.Stream{{ID: 3, Ended: true}}}, "Nothing is under way"},
		"distrust":  {observe.Sight{Conversation: observe.Conversation{Distrusted: []string{"sampling"}}}, "Not asked for sampling any more"},
	} {
		if got := newSession("/mcp", tc.sight, now).Diagnosis; !strings.Contains(got.Text, tc.says) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestItSumsAMountUp(t *testing.T) {
	busy := newSession("/mcp", observe.Sight{Conversation: observe.Conversation{Flows: []observe.Flow{
		ago(time.Minute, observe.ForServer), ago(time.Hour, observe.ForClient, asked(observe.Form, true)),
	}}}, now)
	for says, m := range map[string]struct {
		mount Mount
		all   []*session
	}{
		"Clients cannot be served: refused":       {Mount{Said: "refused"}, nil},
		"All is well: 0 sessions, nothing waits.": {Mount{Ready: true}, nil},
		"2 calls under way, 1 with a person, 1 with the server; 1 call needs a look, first book of (no name): the server is silent": {Mount{Ready: true}, []*session{busy}},
	} {
		if got := ofMount(&m.mount, m.all); !strings.Contains(got.Text, says) {
			t.Errorf("%q is not in %q", says, got.Text)
		}
	}
}

const hostile = `<script>alert(1)</script>"'&`

// crowded is a view of many sessions, with everything that peers write hostile.
func crowded(n int, payloads bool) *View {
	mount := Mount{Path: "/mcp", Target: "http://server", Ready: true, Limit: 100, Server: []byte(`{"capabilities":{"tools":{}},"serverInfo":{"name":` + strconv.Quote(hostile) + `}}`),
		Omissions: []observe.Omission{{Method: "tools/list", Name: hostile, Reason: hostile}}}
	for i := range n {
		flow := ago(time.Minute, observe.ForClient, observe.Open{Kind: observe.Form, Asked: true, Message: "which-secret " + hostile})
		flow.Name = hostile
		mount.Sessions = append(mount.Sessions, observe.Sight{ID: "S" + strconv.Itoa(i), Began: now, Conversation: observe.Conversation{
			Number: uint64(i), Version: mcp.V20250618, ClientInfo: []byte(`{"name":` + strconv.Quote(hostile+strconv.Itoa(i)) + `}`), Flows: []observe.Flow{flow},
			Declared: []byte(`{"elicitation":{}}`), Effective: []byte(`{}`),
		}})
	}
	events := []observe.Event{
		{Call: 1, Kind: "request", Method: hostile, ID: hostile, At: now},
		{Call: 1, Hop: observe.Upstream, Out: true, Kind: "request", Method: mcp.MethodToolsCall, Round: 1, At: now},
		{Call: 1, Hop: observe.Upstream, Kind: "response", Status: "input_required", Round: 1, At: now.Add(time.Second)},
		{Call: 1, Out: true, Kind: "question", Method: mcp.MethodElicitationCreate, ID: "b-1", At: now.Add(time.Second)},
		{Kind: "answer", ID: "b-1", Status: "result", At: now.Add(time.Minute)},
		{Call: 1, Out: true, Kind: "response", Status: "complete", Took: time.Minute, At: now.Add(time.Minute)},
	}
	return New(Options{Look: func() []Mount { return []Mount{mount} }, Messages: func(uint64) []observe.Event { return events },
		After: func(uint64) []observe.Event { return events }, Payloads: payloads, Recording: &tape{}})
}

func get(v *View, target string, headers ...string) (status int, body string) {
	r := httptest.NewRequest("GET", target, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	v.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

var everyPage = []string{"/", "/waiting", "/sessions", "/sessions?client=S1&state=grave&version=2025-06-18&mount=/mcp&from=-5", "/session?mount=/mcp&id=S1", "/server",
	"/session?mount=/mcp&id=none", "/session.jsonl?mount=/mcp&id=S1"}

func TestNothingThatPeersWriteIsMarkup(t *testing.T) {
	v := crowded(2, true)
	for _, page := range everyPage {
		if _, body := get(v, page); strings.Contains(body, "<script>") || strings.Contains(body, "style=") || strings.Contains(body, "onclick") {
			t.Errorf("%s lets markup through", page)
		}
	}
}

func TestWhatServersAskIsShownOnlyIfAllowed(t *testing.T) {
	for _, payloads := range []bool{false, true} {
		shown := false
		for _, page := range everyPage {
			_, body := get(crowded(2, payloads), page)
			shown = shown || strings.Contains(body, "which-secret")
		}
		if shown != payloads {
			t.Errorf("payloads %v: shown %v", payloads, shown)
		}
	}
}

func TestPages(t *testing.T) {
	v := crowded(1000, false)
	if status, body := get(v, "/sessions?from=400"); status != 200 || strings.Count(body, "<tr ") != mostRows || !strings.Contains(body, "from=600") || !strings.Contains(body, "from=200") {
		t.Errorf("%d, %d rows", status, strings.Count(body, "<tr "))
	}
	if status, _ := get(v, "/session?mount=/mcp&id=gone"); status != 404 {
		t.Errorf("a session that is gone: %d", status)
	}
	if status, _ := get(v, "/session.jsonl?mount=/mcp&id=gone"); status != 404 {
		t.Errorf("a download of a session that is gone: %d", status)
	}
	if _, body := get(v, "/", "X-Part", "live"); strings.Contains(body, "<html") || !strings.Contains(body, "What waits") {
		t.Error("the live part is not a part")
	}
	if _, body := get(v, "/session?mount=/mcp&id=S8"); !strings.Contains(body, "round 1 ·") {
		t.Error("the first round is not called round 1, as in the lanes")
	}
	if _, body := get(v, "/session?mount=/mcp&id=S7"); strings.Count(body, `class="band"`) != 1 || !strings.Contains(body, "59 s with the person") {
		t.Error("the answer does not belong to its call")
	}
	for _, file := range []string{"/static/view.css", "/static/view.mjs", "/static/icon.svg"} {
		if status, _ := get(v, file); status != 200 {
			t.Errorf("%s: %d", file, status)
		}
	}
}

// done notes what was done.
type done []string

func (d *done) EndCall(mount, session, flow string) bool {
	*d = append(*d, "call "+mount+" "+session+" "+flow)
	return session == "S1" && flow == "f1"
}

func (d *done) EndSession(mount, id string) bool {
	*d = append(*d, "session "+mount+" "+id)
	return true
}

func (d *done) SetLevel(name string) bool { *d = append(*d, "level "+name); return true }

func (d *done) Level() string { return "info" }

func post(v *View, form string) (status int, to string) {
	r := httptest.NewRequest("POST", "/action", strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	v.ServeHTTP(w, r)
	return w.Code, w.Header().Get("Location")
}

func TestActionsAreThereOnlyIfAllowed(t *testing.T) {
	looking := crowded(2, false)
	if status, _ := post(looking, "do=end-call&mount=/mcp&id=f1"); status != 404 && status != 405 {
		t.Errorf("who may only look ended a call: %d", status)
	}
	if _, body := get(looking, "/session?mount=/mcp&id=S1"); strings.Contains(body, "/confirm") {
		t.Error("who may only look is shown actions")
	}
	var deeds done
	options := looking.opt
	options.Actions = &deeds
	acting := New(options)
	if _, body := get(acting, "/session?mount=/mcp&id=S1"); strings.Count(body, "/confirm") != 2 {
		t.Error("actions are missing")
	}
	for form, want := range map[string]int{
		"do=end-call&mount=/mcp&session=S1&id=f1": 303, "do=end-call&mount=/mcp&session=S1&id=f2": 404, "do=end-session&mount=/mcp&id=S1": 303, "do=level&level=debug": 303,
		"do=other": 400, "": 400, "do=level&level=" + strings.Repeat("x", maxForm): 400,
	} {
		if status, to := post(acting, form); status != want || (status == 303) != strings.HasPrefix(to, "/") {
			t.Errorf("%.40s: %d to %q, want %d", form, status, to, want)
		}
	}
	if len(deeds) != 4 {
		t.Errorf("done: %q", deeds)
	}
}

// tape stands in for the recorder.
type tape struct{ state record.State }

func (t *tape) StartRecording(of record.Filter) error {
	if t.state.On {
		return record.ErrRunning
	}
	t.state.On, t.state.Began, t.state.Filter = true, now, of.String()
	return nil
}

func (t *tape) StopRecording() { t.state.On = false }

func (t *tape) RecordingState() record.State { return t.state }

func (t *tape) OpenRecording() (io.ReadCloser, error) {
	if t.state.Began.IsZero() {
		return nil, record.ErrNone
	}
	return io.NopCloser(strings.NewReader("{}\n")), nil
}

func TestARecordingIsStartedStoppedAndFetched(t *testing.T) {
	v := crowded(2, false)
	for _, step := range []struct {
		method, path, form string
		status             int
		says               string
	}{
		{"GET", "/recording", "", 200, "Nothing is recorded"},
		{"GET", "/recording.jsonl", "", 404, "there is no recording"},
		{"POST", "/recording", "do=start", 303, ""},
		{"POST", "/recording", "do=start", 409, "under way"},
		{"GET", "/recording", "", 200, "Recording since"},
		{"GET", "/", "", 200, "Messages are recorded without what they say"},
		{"POST", "/recording", "do=stop", 303, ""},
		{"POST", "/recording", "do=start&session=nobody", 404, "no session nobody"},
		{"GET", "/recording?session=%22%3Eid", "", 200, "&#34;&gt;id"},
		{"POST", "/recording", "do=start&session=S1&client=c&tool=t&questions=on&failed=on", 303, ""},
		{"GET", "/recording", "", 200, "client c, calls of t, calls with questions, calls that failed, from its beginning"},
		{"POST", "/recording", "do=stop", 303, ""},
		{"POST", "/recording", "do=laugh", 400, ""},
		{"GET", "/recording", "", 200, "The last recording ended"},
		{"GET", "/recording.jsonl", "", 200, "{}"},
	} {
		r := httptest.NewRequest(step.method, step.path, strings.NewReader(step.form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		v.ServeHTTP(w, r)
		if w.Code != step.status || !strings.Contains(w.Body.String(), step.says) {
			t.Errorf("%s %s %s: %d %s", step.method, step.path, step.form, w.Code, w.Body)
		}
	}
}
