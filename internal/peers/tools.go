package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func (s *Server) addTools() {
	addTool(s, "echo", "Returns its arguments.", anyArgs, echo, readOnly)
	addTool(s, "greet", "Asks for a name: one question, no request state.", anyArgs, greet)
	addTool(s, "pick", "Asks to pick one of two titled options.", anyArgs, pick)
	addTool(s, "book", "Asks where to, then which seat: two rounds with signed request state.", bookArgs, book)
	addTool(s, "busy", "Sheds load with state-only rounds, then works.", anyArgs, busy)
	addTool(s, "summarize", "Asks the client's model: sampling.", anyArgs, summarize)
	addTool(s, "workspace", "Asks for the client's roots.", anyArgs, workspace)
	addTool(s, "trip", "Asks three things in one round: a form, the model and the roots.", anyArgs, trip)
	addTool(s, "work", "Reports progress, and asks in between when told to.", anyArgs, work)
	addTool(s, "hang", "Runs until it is cancelled.", anyArgs, hang)
	addTool(s, "fail", "Fails as a tool, or with a JSON-RPC error of the given code.", anyArgs, fail)
	addTool(s, "chatter", "Logs one message of each level.", anyArgs, chatter)
	addTool(s, "stubborn", "Asks the same question for ever.", anyArgs, stubborn)
	addTool(s, "pay", "Sends the user to a page: URL elicitation.", anyArgs, pay)
	addTool(s, "weather", "Has an output schema and structured content.", anyArgs, weather, weatherOutput)
	addTool(s, "numbers", "Returns an array as structured content.", anyArgs, numbers, numbersOutput)
}

func readOnly(t *mcp.Tool) { t.Annotations = &mcp.ToolAnnotations{ReadOnlyHint: true} }

func echo(_ context.Context, c *call) (*mcp.CallToolResult, error) {
	args := c.Params.Arguments
	if args == nil {
		args = json.RawMessage(`{}`)
	}
	return text("%s", args), nil
}

func greet(_ context.Context, c *call) (*mcp.CallToolResult, error) {
	answer, ok := c.elicited("who")
	if !ok {
		return c.ask(nil, mcp.InputRequestMap{"who": form("What is your name?",
			`{"type":"object","properties":{"name":{"type":"string","title":"Name","minLength":1}},"required":["name"]}`)})
	}
	if answer.Action != "accept" {
		return text("no greeting: %s", answer.Action), nil
	}
	c.effect("greet %v", answer.Content["name"])
	return text("Hello, %v!", answer.Content["name"]), nil
}

func pick(_ context.Context, c *call) (*mcp.CallToolResult, error) {
	answer, ok := c.elicited("class")
	if !ok {
		return c.ask(1, mcp.InputRequestMap{"class": form("Which class?",
			`{"type":"object","properties":{"class":{"type":"string","title":"Class","oneOf":[{"const":"e","title":"Economy"},{"const":"b","title":"Business"}],"default":"e"}},"required":["class"]}`)})
	}
	if answer.Action != "accept" {
		return text("nothing picked: %s", answer.Action), nil
	}
	c.effect("pick %v", answer.Content["class"])
	return text("picked %v", answer.Content["class"]), nil
}

var bookArgs = json.RawMessage(`{"type":"object","properties":{"passenger":{"type":"string"}},"required":["passenger"]}`)

type bookState struct {
	Step int    `json:"step"`
	City string `json:"city,omitempty"`
}

func book(_ context.Context, c *call) (*mcp.CallToolResult, error) {
	var st bookState
	if _, err := c.state(&st); err != nil {
		return nil, err
	}
	switch {
	case st.Step == 1:
		return bookCity(c)
	case st.Step == 2:
		return bookSeat(c, st.City)
	}
	return c.ask(bookState{Step: 1}, mcp.InputRequestMap{"destination": form("Where do you want to fly?",
		`{"type":"object","properties":{"city":{"type":"string","oneOf":[{"const":"LIS","title":"Lisbon"},{"const":"OSL","title":"Oslo"}],"default":"LIS"}},"required":["city"]}`)})
}

func bookCity(c *call) (*mcp.CallToolResult, error) {
	answer, ok := c.elicited("destination")
	if !ok || answer.Action != "accept" {
		return text("nothing booked"), nil
	}
	city := fmt.Sprint(answer.Content["city"])
	return c.ask(bookState{Step: 2, City: city}, mcp.InputRequestMap{"seat": form("Which seat to "+city+"?",
		`{"type":"object","properties":{"row":{"type":"integer","minimum":1,"maximum":40},"window":{"type":"boolean","default":true}},"required":["row"]}`)})
}

func bookSeat(c *call, city string) (*mcp.CallToolResult, error) {
	answer, ok := c.elicited("seat")
	if !ok || answer.Action != "accept" {
		return text("nothing booked"), nil
	}
	if len(c.Params.InputResponses) != 1 {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "answers of an earlier round came again"}
	}
	c.effect("book %v to %s row %v", c.args["passenger"], city, answer.Content["row"])
	return text("Booked %v to %s, row %v, window %v.", c.args["passenger"], city, answer.Content["row"], answer.Content["window"]), nil
}

type busyState struct {
	Round int `json:"round"`
}

func busy(_ context.Context, c *call) (*mcp.CallToolResult, error) {
	var st busyState
	if _, err := c.state(&st); err != nil {
		return nil, err
	}
	if st.Round < c.number("rounds", 1) {
		return c.ask(busyState{st.Round + 1}, mcp.InputRequestMap{})
	}
	c.effect("busy after %d", st.Round)
	return text("done after %d state-only rounds", st.Round), nil
}

func sample(prompt string) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{MaxTokens: 50, SystemPrompt: "Be brief.",
		Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: prompt}}}}
}

// sampled returns the text that the client's model wrote.
func (c *call) sampled(key string) (string, bool) {
	r, ok := c.Params.InputResponses[key].(*mcp.CreateMessageWithToolsResult)
	if !ok || len(r.Content) == 0 {
		return "", false
	}
	t, ok := r.Content[0].(*mcp.TextContent)
	if !ok {
		return "", false
	}
	return t.Text, true
}

func summarize(_ context.Context, c *call) (*mcp.CallToolResult, error) {
	summary, ok := c.sampled("summary")
	if !ok {
		return c.ask(nil, mcp.InputRequestMap{"summary": sample("Summarize the weather.")})
	}
	return text("summary: %s", summary), nil
}

// roots returns the roots that the client listed, as one line.
func (c *call) roots(key string) (string, bool) {
	r, ok := c.Params.InputResponses[key].(*mcp.ListRootsResult)
	if !ok {
		return "", false
	}
	var uris []string
	for _, root := range r.Roots {
		uris = append(uris, root.URI)
	}
	return strings.Join(uris, " "), true
}

func workspace(_ context.Context, c *call) (*mcp.CallToolResult, error) {
	uris, ok := c.roots("roots")
	if !ok {
		return c.ask(nil, mcp.InputRequestMap{"roots": &mcp.ListRootsParams{}})
	}
	return text("roots: %s", uris), nil
}

func trip(_ context.Context, c *call) (*mcp.CallToolResult, error) {
	if len(c.Params.InputResponses) == 0 {
		return c.ask(map[string]int{"asked": 3}, mcp.InputRequestMap{
			"days":  form("How many days?", `{"type":"object","properties":{"days":{"type":"integer"}},"required":["days"]}`),
			"ideas": sample("Where to?"),
			"roots": &mcp.ListRootsParams{},
		})
	}
	var st map[string]int
	if ok, err := c.state(&st); err != nil || !ok || st["asked"] != 3 {
		return nil, errors.Join(err, errors.New("the request state is missing"))
	}
	answer, ok := c.elicited("days")
	ideas, ok2 := c.sampled("ideas")
	uris, ok3 := c.roots("roots")
	if !ok || !ok2 || !ok3 {
		return text("an answer is missing"), nil
	}
	return text("%s; %v days (%s); files in %s", ideas, answer.Content["days"], answer.Action, uris), nil
}

func stubborn(_ context.Context, c *call) (*mcp.CallToolResult, error) {
	return c.ask(nil, mcp.InputRequestMap{"again": form("Again?", `{"type":"object","properties":{"ok":{"type":"boolean"}}}`)})
}

func pay(_ context.Context, c *call) (*mcp.CallToolResult, error) {
	answer, ok := c.elicited("page")
	if !ok {
		return c.ask(nil, mcp.InputRequestMap{"page": &mcp.ElicitParams{Mode: "url", Message: "Pay there", URL: "https://pay.example/order/1"}})
	}
	return text("paid: %s", answer.Action), nil
}
