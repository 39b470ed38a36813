package demo

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/bridge/internal/modernonly"
)

// replicas is how many copies of the flight server share the traffic. They
// share a signing key and nothing else.
const replicas = 3

// flights is an MRTR-only server behind a round-robin: the worst case for an
// old client, since no replica could hold a conversation with it.
type flights struct {
	key      modernonly.Key
	handlers []http.Handler
	next     atomic.Uint32
}

func newFlights() *flights {
	f := &flights{key: make(modernonly.Key, 32)}
	_, _ = rand.Read(f.key) // never fails since Go 1.24
	for i := range replicas {
		srv := f.replica(i + 1)
		h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv },
			&mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
		f.handlers = append(f.handlers, modernonly.RejectLegacy(h))
	}
	return f
}

// ServeHTTP hands each request to the next replica.
func (f *flights) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.handlers[int(f.next.Add(1)-1)%len(f.handlers)].ServeHTTP(w, r)
}

// serve serves h on a loopback port chosen by the system.
func serve(h http.Handler) (url string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listen for the demo server: %w", err)
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l)
	}()
	return "http://" + l.Addr().String() + "/mcp", func() { _ = srv.Close(); <-done }, nil
}

func (f *flights) replica(n int) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "flights", Title: fmt.Sprintf("Flights, replica %d", n), Version: "1.0.0"},
		&mcp.ServerOptions{SupportedProtocolVersions: []string{modernonly.Version}, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
	s.AddTool(&mcp.Tool{
		Name:        tool,
		Description: "Books a flight. Asks where to, then for seat, bags and confirmation.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"passenger":{"type":"string"}},"required":["passenger"]}`),
	}, f.book)
	return s
}

// tool is the one tool of the flight server.
const tool = "book_flight"

// trip is the request state: all that the server knows about the call between
// two rounds. The client carries it.
type trip struct {
	Passenger string    `json:"passenger"`
	City      string    `json:"city,omitempty"`
	Price     int       `json:"price,omitempty"`
	Quoted    time.Time `json:"quoted"`
}

var fares = map[string]int{"Lisbon": 129, "Oslo": 94, "Tokyo": 742}

const (
	destinationForm = `{"type":"object","required":["city"],"properties":{"city":{"type":"string","title":"Destination",
		"oneOf":[{"const":"Lisbon","title":"Lisbon, 129 EUR"},{"const":"Oslo","title":"Oslo, 94 EUR"},{"const":"Tokyo","title":"Tokyo, 742 EUR"}],"default":"Lisbon"}}}`
	detailsForm = `{"type":"object","required":["seat","bags","confirm"],"properties":{
		"seat":{"type":"string","title":"Seat","oneOf":[{"const":"window","title":"Window"},{"const":"aisle","title":"Aisle"}],"default":"window"},
		"bags":{"type":"integer","title":"Checked bags","minimum":0,"maximum":3,"default":1},
		"confirm":{"type":"boolean","title":"Book it","default":true}}}`
)

// book runs one round of the tool: whatever it needs to know stands in the
// request, so each round may run on another replica.
func (f *flights) book(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var args struct{ Passenger string }
	if err := json.Unmarshal(req.Params.Arguments, &args); err != nil || args.Passenger == "" {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "passenger is missing"}
	}
	if p := req.Session.InitializeParams(); p == nil || p.Capabilities == nil || p.Capabilities.Elicitation == nil {
		return nil, &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "booking takes a client that can ask its user",
			Data: json.RawMessage(`{"requiredCapabilities":{"elicitation":{}}}`)}
	}
	subject := fmt.Sprintf("%s %x", tool, sha256.Sum256(req.Params.Arguments))
	if req.Params.RequestState == "" {
		return f.ask(subject, trip{Passenger: args.Passenger, Quoted: time.Now().UTC().Truncate(time.Second)}, "destination", "Where do you want to fly?", destinationForm)
	}
	var t trip
	if err := f.key.Open(subject, req.Params.RequestState, &t); err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	if t.City == "" {
		return f.quote(subject, t, req.Params.InputResponses["destination"])
	}
	return confirm(t, req.Params.InputResponses["details"]), nil
}

func (f *flights) quote(subject string, t trip, answer mcp.InputResponse) (*mcp.CallToolResult, error) {
	a, ok := accepted(answer)
	if !ok {
		return say("Nothing was booked: no destination was chosen."), nil
	}
	t.City = fmt.Sprint(a["city"])
	t.Price = fares[t.City]
	return f.ask(subject, t, "details", fmt.Sprintf("%s for %d EUR. Seat, bags, and shall I book it?", t.City, t.Price), detailsForm)
}

func confirm(t trip, answer mcp.InputResponse) *mcp.CallToolResult {
	a, ok := accepted(answer)
	if yes, _ := a["confirm"].(bool); !ok || !yes {
		return say("Nothing was booked: it was not confirmed.")
	}
	return say("Booked: %s to %s, %v seat, bags: %v, %d EUR.", t.Passenger, t.City, a["seat"], a["bags"], t.Price)
}

func (f *flights) ask(subject string, t trip, key, message, form string) (*mcp.CallToolResult, error) {
	state, err := f.key.Seal(subject, t)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{RequestState: state, InputRequests: mcp.InputRequestMap{
		key: &mcp.ElicitParams{Mode: "form", Message: message, RequestedSchema: json.RawMessage(form)},
	}}, nil
}

func accepted(answer mcp.InputResponse) (map[string]any, bool) {
	r, ok := answer.(*mcp.ElicitResult)
	if !ok || r.Action != "accept" {
		return nil, false
	}
	return r.Content, true
}

func say(format string, args ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
}
