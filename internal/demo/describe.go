package demo

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/mcpbridge/bridge/internal/wirelog"
	"github.com/mcpbridge/bridge/rawjson"
)

// line is one message as the screen shows it.
type line struct {
	hop     wirelog.Hop
	toRight bool     // from the client's side towards the server's
	head    string   // method or outcome
	details []string // what matters in it, each short
	asks    bool     // a question to the person
	ends    bool     // the answer to the person's call
}

// describer turns entries into lines. It remembers which method an exchange
// serves, because responses do not say.
type describer struct {
	methods map[int]string
}

// message holds the members of any message that the screen shows.
type message struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Name, URI, Message string
		ProtocolVersion    string
		Arguments          json.RawMessage
		Progress, Total    json.Number
		InputResponses     map[string]json.RawMessage
		RequestState       json.RawMessage
	}
	Result *result
	Error  *struct {
		Code    int
		Message string
	}
}

type result struct {
	ResultType        string
	Action            string
	Content           json.RawMessage
	ProtocolVersion   string
	SupportedVersions []string
	InputRequests     map[string]struct {
		Method string
		Params struct{ Message string }
	}
	RequestState json.RawMessage
	Tools        []struct{ Name string }
	Meta         struct {
		Server struct{ Title string } `json:"io.modelcontextprotocol/serverInfo"`
	} `json:"_meta"`
}

// quiet are methods that are housekeeping of either era and say nothing about
// a call.
var quiet = map[string]bool{
	"notifications/initialized": true, "subscriptions/listen": true,
	"notifications/subscriptions/acknowledged": true, "ping": true,
}

// describe returns the line for an entry, or false when there is nothing worth
// a line.
func (d *describer) describe(e wirelog.Entry) (line, bool) {
	l := line{hop: e.Hop, toRight: e.Kind == wirelog.Request || e.Kind == wirelog.Abandoned}
	switch e.Kind {
	case wirelog.Priming:
		return l, false
	case wirelog.Abandoned:
		l.head = "closes the stream: cancelled"
		return l, d.methods[e.Exchange] != "" && !quiet[d.methods[e.Exchange]]
	}
	if e.Kind == wirelog.Request && e.Method == http.MethodDelete {
		l.head = "DELETE: session ends"
		return l, true
	}
	var m message
	if len(e.Data) == 0 || json.Unmarshal(e.Data, &m) != nil {
		return l, false
	}
	method := d.method(e, m)
	if quiet[method] {
		return l, false
	}
	switch {
	case m.Error != nil:
		l.head = fmt.Sprintf("error %d", m.Error.Code)
		l.details = []string{clip(m.Error.Message)}
		l.ends = e.Kind != wirelog.Request
	case m.Result == nil:
		d.call(&l, m)
	case e.Kind == wirelog.Request:
		l.head = "answer: " + clip(m.Result.Action)
		l.details = fields(m.Result.Content)
	default:
		outcome(&l, method, m.Result)
	}
	return l, true
}

// method returns the method that an entry is about.
func (d *describer) method(e wirelog.Entry, m message) string {
	if m.Method == "" {
		if e.Kind == wirelog.Request {
			return "" // an answer: the method was in the other direction
		}
		return d.methods[e.Exchange]
	}
	if e.Kind == wirelog.Request {
		if len(d.methods) > 1000 { // a demo that is left running
			clear(d.methods)
		}
		d.methods[e.Exchange] = m.Method
	}
	return m.Method
}

// call describes a request or a notification.
func (d *describer) call(l *line, m message) {
	p := m.Params
	l.head = clip(m.Method)
	switch m.Method {
	case "initialize":
		l.details = []string{"I speak " + clip(p.ProtocolVersion)}
	case "elicitation/create":
		l.asks = true
		l.details = []string{quote(p.Message)}
	case "notifications/progress":
		l.details = []string{strings.TrimSuffix(p.Progress.String()+"/"+p.Total.String(), "/")}
	default:
		if name := p.Name + p.URI; name != "" {
			l.head += " " + clip(name)
		}
		retry := len(p.InputResponses) > 0 || p.RequestState != nil
		if retry {
			l.head += " (retry)"
			l.details = append(answersOf(p.InputResponses), state(p.RequestState))
		} else {
			l.details = fields(p.Arguments)
		}
	}
}

func answersOf(responses map[string]json.RawMessage) (details []string) {
	for _, key := range sorted(responses) {
		var r result
		if json.Unmarshal(responses[key], &r) != nil {
			continue
		}
		got := fields(r.Content)
		if len(got) == 0 {
			got = []string{clip(r.Action)}
		}
		details = append(details, "+ answer: "+strings.Join(got, ", "))
	}
	return details
}

// outcome describes a result.
func outcome(l *line, method string, r *result) {
	switch {
	case r.ResultType == "input_required":
		l.head = "input_required"
		for _, key := range sorted(r.InputRequests) {
			l.details = append(l.details, quote(r.InputRequests[key].Params.Message))
		}
		l.details = append(l.details, state(r.RequestState))
	case method == "initialize":
		l.head = "session opened, " + clip(r.ProtocolVersion)
	case method == "server/discover":
		l.head = "I speak only " + clip(strings.Join(r.SupportedVersions, ", "))
	case len(r.Tools) > 0:
		l.head = fmt.Sprintf("%d tools", len(r.Tools))
		if len(r.Tools) == 1 {
			l.head = "1 tool: " + clip(r.Tools[0].Name)
		}
	default:
		l.head = strings.TrimSpace("result " + method)
		l.ends = method == "tools/call"
		if l.ends {
			l.head = "result"
		}
		l.details = texts(r.Content)
	}
	if l.hop == wirelog.Upstream && r.Meta.Server.Title != "" {
		_, replica, _ := strings.Cut(r.Meta.Server.Title, ", ")
		l.head += " (" + clip(replica) + ")"
	}
}

// state stands for request state, which is the server's secret: its size only.
func state(raw json.RawMessage) string {
	if raw == nil {
		return ""
	}
	return fmt.Sprintf("+ requestState •••• %d bytes", max(len(raw)-2, 0))
}

// fields lists an object's members as "name value", in their order.
func fields(raw json.RawMessage) []string {
	var list []string
	for name, value := range rawjson.Members(raw) {
		text, ok := rawjson.Text(value)
		if !ok {
			text = string(value)
		}
		list = append(list, clip(string(name)+" "+text))
	}
	if len(list) == 0 {
		return nil
	}
	return []string{strings.Join(list, ", ")}
}

func texts(raw json.RawMessage) (list []string) {
	var blocks []struct{ Text string }
	_ = json.Unmarshal(raw, &blocks) // another shape has no text to show
	for _, b := range blocks {
		if b.Text != "" {
			list = append(list, quote(b.Text))
		}
	}
	return list
}

func quote(s string) string { return "“" + clip(s) + "”" }

// clip makes peer-controlled text fit to print: one line, no control
// characters, at most 120 runes.
func clip(s string) string {
	clean := []rune(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return ' '
		}
		return r
	}, s))
	if len(clean) > 120 {
		return string(clean[:119]) + "…"
	}
	return string(clean)
}

func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
