package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// openAI speaks the chat completions API.
type openAI struct{}

type chatRequest struct {
	Model               string        `json:"model"`
	Messages            []chatMessage `json:"messages"`
	MaxTokens           int           `json:"max_tokens,omitempty"`
	MaxCompletionTokens int           `json:"max_completion_tokens,omitempty"`
	Temperature         *float64      `json:"temperature,omitempty"`
	Stop                []string      `json:"stop,omitempty"`
	Tools               []chatTool    `json:"tools,omitempty"`
	ToolChoice          string        `json:"tool_choice,omitempty"`
}

type chatMessage struct {
	Role       string     `json:"role"`
	Content    any        `json:"content,omitempty"` // a string, or []chatPart
	ToolCalls  []chatCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type chatPart struct {
	Type       string     `json:"type"`
	Text       string     `json:"text,omitempty"`
	ImageURL   *chatImage `json:"image_url,omitempty"`
	InputAudio *chatAudio `json:"input_audio,omitempty"`
}

type chatImage struct {
	URL string `json:"url"`
}

type chatAudio struct {
	Data   string `json:"data"`
	Format string `json:"format"`
}

type chatTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	} `json:"function"`
}

type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"` // JSON in a string
	} `json:"function"`
}

func (openAI) request(s *Settings, model string, p *params) (string, http.Header, any, error) {
	body := &chatRequest{Model: model, Temperature: p.Temperature, Stop: p.StopSequences}
	if u, err := url.Parse(s.URL); err == nil && u.Host == "api.openai.com" {
		body.MaxCompletionTokens = int(p.MaxTokens) // its newer models know no other name
	} else {
		body.MaxTokens = int(p.MaxTokens) // others often know no other name
	}
	if p.SystemPrompt != "" {
		body.Messages = append(body.Messages, chatMessage{Role: "system", Content: p.SystemPrompt})
	}
	for i := range p.Messages {
		messages, err := chatMessages(&p.Messages[i])
		if err != nil {
			return "", nil, nil, err
		}
		body.Messages = append(body.Messages, messages...)
	}
	if len(body.Messages) == 0 {
		return "", nil, nil, errNothing
	}
	for _, t := range p.Tools {
		function := chatTool{Type: "function"}
		function.Function.Name, function.Function.Description, function.Function.Parameters = t.Name, t.Description, t.InputSchema
		body.Tools = append(body.Tools, function)
	}
	if len(p.Tools) > 0 {
		body.ToolChoice = p.ToolChoice.Mode // auto, required and none, as here
	}
	header := http.Header{}
	if s.Key != "" {
		header.Set("Authorization", "Bearer "+s.Key)
	}
	return "/chat/completions", header, body, nil
}

// chatMessages turns one message into those that say the same: results of tools are
// messages of their own.
func chatMessages(m *message) ([]chatMessage, error) {
	var results []chatMessage
	spoken := chatMessage{Role: m.Role}
	var parts []chatPart
	for i := range m.Content {
		b := &m.Content[i]
		switch b.Type {
		case typeText:
			parts = append(parts, chatPart{Type: "text", Text: b.Text})
		case typeImage:
			parts = append(parts, chatPart{Type: "image_url", ImageURL: &chatImage{URL: "data:" + b.MIMEType + ";base64," + b.Data}})
		case typeAudio:
			parts = append(parts, chatPart{Type: "input_audio", InputAudio: &chatAudio{Data: b.Data, Format: audioFormat(b.MIMEType)}})
		case typeToolUse:
			call := chatCall{ID: b.ID, Type: "function"}
			call.Function.Name, call.Function.Arguments = b.Name, string(b.Input)
			spoken.ToolCalls = append(spoken.ToolCalls, call)
		case typeToolResult:
			text, err := chatResult(b)
			if err != nil {
				return nil, err
			}
			results = append(results, chatMessage{Role: "tool", ToolCallID: b.ToolUseID, Content: text})
		default:
			return nil, unknown("OpenAI", b.Type)
		}
	}
	switch {
	case len(parts) == 1 && parts[0].Type == "text":
		spoken.Content = parts[0].Text
	case len(parts) > 0:
		spoken.Content = parts
	case len(spoken.ToolCalls) == 0:
		return results, nil
	}
	return append(results, spoken), nil
}

// chatResult is the text of a tool's result: the API has no other content there, and no word for failure.
func chatResult(b *block) (string, error) {
	text, err := b.plain(func(b *block) (string, error) { return "", unknown("OpenAI", b.Type+" in a tool result") })
	if b.IsError {
		text = "Error: " + text
	}
	return text, err
}

// audioFormat is the API's name of a media type: audio/x-wav is wav, audio/mpeg mp3.
func audioFormat(mime string) string {
	switch _, sub, _ := strings.Cut(mime, "/"); sub {
	case "mpeg", "mp3":
		return "mp3"
	case "x-wav", "wave", "vnd.wave":
		return "wav"
	default:
		return sub
	}
}

func (openAI) response(body []byte, model string) (*result, error) {
	var r struct {
		Model   string `json:"model"`
		Choices []struct {
			Message struct {
				Content   chatText     `json:"content"`
				Refusal   string       `json:"refusal"`
				ToolCalls []calledTool `json:"tool_calls"`
			} `json:"message"`
			FinishReason string `json:"finish_reason"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	if len(r.Choices) == 0 {
		return nil, errors.New("no choices")
	}
	said := r.Choices[0].Message
	var content blocks
	if text := string(said.Content) + said.Refusal; text != "" {
		content = append(content, block{Type: typeText, Text: text})
	}
	for i, call := range said.ToolCalls {
		input, err := call.input()
		if err != nil {
			return nil, err
		}
		id := cmp.Or(call.ID, "call_"+strconv.Itoa(i)) // some servers name none
		content = append(content, block{Type: typeToolUse, ID: id, Name: call.Function.Name, Input: input})
	}
	stop := r.Choices[0].FinishReason
	if known, ok := map[string]string{"stop": stopEnd, "length": stopTokens, "tool_calls": stopTool}[stop]; ok {
		stop = known
	}
	if stop == stopEnd && len(said.ToolCalls) > 0 {
		stop = stopTool // some servers always say stop
	}
	return finished(content, cmp.Or(r.Model, model), stop)
}

// calledTool is a chatCall as servers write it.
type calledTool struct {
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// input returns the arguments: JSON in a string as the API has it, or as it is. Some servers say nothing of a tool without parameters.
func (c *calledTool) input() (json.RawMessage, error) {
	input := c.Function.Arguments
	var text string
	if json.Unmarshal(input, &text) == nil {
		input = json.RawMessage(text)
	}
	if len(input) == 0 {
		return json.RawMessage("{}"), nil
	}
	if !json.Valid(input) {
		return nil, errors.New("a tool's arguments are no JSON")
	}
	return input, nil
}

// chatText is what a message says: a string, or with some servers a list of parts.
type chatText string

// UnmarshalJSON implements json.Unmarshaler.
func (t *chatText) UnmarshalJSON(raw []byte) error {
	var parts []chatPart
	if json.Unmarshal(raw, &parts) == nil {
		for i := range parts {
			*t += chatText(parts[i].Text)
		}
		return nil
	}
	return json.Unmarshal(raw, (*string)(t))
}
