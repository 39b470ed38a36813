package replay

import (
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe/record"
	"github.com/mcpbridge/bridge/rawjson"
)

// Server plays the server of a recording over Streamable HTTP. A request gets the answer
// of the recorded request with its method, name and request state; of several the next
// one each time, and in the end the last one again.
type Server struct {
	payloads bool
	redact   *record.Redactor
	mu       sync.Mutex
	known    map[string][]*Exchange // those with an answer, in their order
}

// NewServer returns the server of a recording.
func NewServer(head record.Head, exchanges []*Exchange) *Server {
	s := &Server{payloads: head.Payloads, redact: record.NewRedactor(head.Payloads), known: map[string][]*Exchange{}}
	for _, x := range exchanges {
		if x.Answer != nil {
			key := subject(&x.Request, x.Request.Params)
			s.known[key] = append(s.known[key], x)
		}
	}
	return s
}

// subject is what a request is found by. seen has its params as a recording has them,
// but for the state, which is the name that a recording gave it.
func subject(m *jsonrpc.Message, seen []byte) string {
	key := m.Method + "\x00" + string(rawjson.Get(m.Params, "requestState"))
	for _, member := range []string{"name", "uri", "cursor"} {
		key += "\x00" + string(rawjson.Get(seen, member))
	}
	return key
}

// maxRequest bounds a request, in bytes.
const maxRequest = 16 << 20

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "POST a message", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err == nil {
		err = rawjson.Validate(body)
	}
	if err != nil {
		http.Error(w, "this is no message", http.StatusBadRequest)
		return
	}
	msg, err := jsonrpc.Parse(body)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case msg.Kind() != jsonrpc.Request:
		w.WriteHeader(http.StatusAccepted)
	case msg.Method == mcp.MethodListen:
		listen(w, r, &msg)
	default:
		s.answer(w, &msg)
	}
}

func (s *Server) answer(w http.ResponseWriter, msg *jsonrpc.Message) {
	x := s.next(subject(msg, rawjson.Get(s.redact.Message(msg.AppendTo(nil)), "params")))
	switch {
	case x != nil:
	case msg.Method == mcp.MethodDiscover:
		write(w, discovered, msg)
		return
	default:
		write(w, jsonrpc.Message{Error: &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
			Message: fmt.Sprintf("the recording has no such request: %s", (&Exchange{Request: *msg}).name())}}, msg)
		return
	}
	if len(x.Notifications) == 0 {
		write(w, s.played(*x.Answer), msg)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	token := rawjson.Get(rawjson.Get(msg.Params, "_meta"), "progressToken")
	for _, n := range x.Notifications {
		n = s.played(n)
		if n.Method == mcp.NotificationProgress && token != nil {
			n.Params = rawjson.Apply(nil, n.Params, rawjson.Edit{Name: "progressToken", Value: token})
		}
		event(w, n)
	}
	answer := s.played(*x.Answer)
	answer.ID = msg.ID
	event(w, answer)
}

// next returns the exchange to play; nil: none was recorded.
func (s *Server) next(key string) *Exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.known[key]
	if len(known) == 0 {
		return nil
	}
	if len(known) > 1 {
		s.known[key] = known[1:]
	}
	return known[0]
}

// played makes a recorded message one that a client can read.
func (s *Server) played(m jsonrpc.Message) jsonrpc.Message {
	if !s.payloads {
		m.Result, m.Params = concrete(m.Result), concrete(m.Params)
	}
	return m
}

// discovered answers for a recording that began after the server was asked what it is.
var discovered = jsonrpc.Message{Result: []byte(`{"resultType":"complete","supportedVersions":["2026-07-28"],` +
	`"capabilities":{"tools":{},"prompts":{},"resources":{},"completions":{}},"serverInfo":{"name":"recording","version":"1"},"ttlMs":0,"cacheScope":"private"}`)}

func write(w http.ResponseWriter, answer jsonrpc.Message, to *jsonrpc.Message) {
	answer.ID = to.ID
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer.AppendTo(nil))
}

func event(w http.ResponseWriter, msg jsonrpc.Message) {
	fmt.Fprintf(w, "data: %s\n\n", msg.AppendTo(nil))
	_ = http.NewResponseController(w).Flush()
}

// listen acknowledges a subscription, on which nothing happens.
func listen(w http.ResponseWriter, r *http.Request, msg *jsonrpc.Message) {
	filter := rawjson.Get(msg.Params, "notifications")
	if filter == nil {
		filter = []byte("{}")
	}
	w.Header().Set("Content-Type", "text/event-stream")
	params := fmt.Appendf(nil, `{"_meta":{%q:%s},"notifications":%s}`, mcp.MetaSubscriptionID, msg.ID, filter)
	event(w, jsonrpc.Message{Method: mcp.NotificationAcknowledged, Params: params})
	<-r.Context().Done()
}
