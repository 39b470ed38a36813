package model

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
)

// anthropic speaks the messages API.
type anthropic struct{}

// anthropicVersion is the version of the API that this file speaks.
const anthropicVersion = "2023-06-01"

type messagesRequest struct {
	Model         string            `json:"model"`
	MaxTokens     int               `json:"max_tokens"`
	System        string            `json:"system,omitempty"`
	Messages      []messagesMessage `json:"messages"`
	Temperature   *float64          `json:"temperature,omitempty"`
	StopSequences []string          `json:"stop_sequences,omitempty"`
	Tools         []messagesTool    `json:"tools,omitempty"`
	ToolChoice    *messagesChoice   `json:"tool_choice,omitempty"`
}

type messagesMessage struct {
	Role    string          `json:"role"`
	Content []messagesBlock `json:"content"`
}

type messagesBlock struct {
	Type      string           `json:"type"`
	Text      string           `json:"text,omitempty"`
	Source    *messagesSource  `json:"source,omitempty"`
	ID        string           `json:"id,omitempty"`
	Name      string           `json:"name,omitempty"`
	Input     json.RawMessage  `json:"input,omitempty"`
	ToolUseID string           `json:"tool_use_id,omitempty"`
	Content   *[]messagesBlock `json:"content,omitempty"`
	IsError   bool             `json:"is_error,omitempty"`
}

type messagesSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

type messagesTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type messagesChoice struct {
	Type string `json:"type"`
}

func (anthropic) request(s *Settings, model string, p *params) (string, http.Header, any, error) {
	body := &messagesRequest{Model: model, MaxTokens: int(p.MaxTokens), System: p.SystemPrompt, Temperature: p.Temperature, StopSequences: p.StopSequences}
	for i := range p.Messages {
		content, err := messagesBlocks(p.Messages[i].Content)
		if err != nil {
			return "", nil, nil, err
		}
		if len(content) > 0 {
			body.Messages = append(body.Messages, messagesMessage{Role: p.Messages[i].Role, Content: content})
		}
	}
	if len(body.Messages) == 0 {
		return "", nil, nil, errNothing
	}
	for _, t := range p.Tools {
		body.Tools = append(body.Tools, messagesTool(t))
	}
	if mode := p.ToolChoice.Mode; mode != "" && len(p.Tools) > 0 {
		body.ToolChoice = &messagesChoice{Type: map[string]string{"required": "any", "none": "none"}[mode]}
		if body.ToolChoice.Type == "" {
			body.ToolChoice.Type = "auto"
		}
	}
	header := http.Header{}
	header.Set("Anthropic-Version", anthropicVersion)
	if s.Key != "" {
		header.Set("X-Api-Key", s.Key)
	}
	return "/v1/messages", header, body, nil
}

func messagesBlocks(content []block) ([]messagesBlock, error) {
	out := make([]messagesBlock, 0, len(content))
	for i := range content {
		b := &content[i]
		switch b.Type {
		case typeText:
			out = append(out, messagesBlock{Type: typeText, Text: b.Text})
		case typeImage:
			out = append(out, messagesBlock{Type: typeImage, Source: &messagesSource{Type: "base64", MediaType: b.MIMEType, Data: b.Data}})
		case typeToolUse:
			out = append(out, messagesBlock{Type: typeToolUse, ID: b.ID, Name: b.Name, Input: b.Input})
		case typeToolResult:
			inner, err := messagesBlocks(inWords(b.Content))
			if err != nil {
				return nil, err
			}
			if len(inner) == 0 && b.StructuredContent != nil {
				inner = []messagesBlock{{Type: typeText, Text: string(b.StructuredContent)}}
			}
			out = append(out, messagesBlock{Type: typeToolResult, ToolUseID: b.ToolUseID, Content: &inner, IsError: b.IsError})
		default:
			return nil, unknown("Anthropic", b.Type)
		}
	}
	return out, nil
}

// inWords has what a tool's result refers to as texts, where there are some.
func inWords(content []block) []block {
	out := slices.Clone(content)
	for i := range out {
		if text, ok := out[i].words(); ok {
			out[i] = block{Type: typeText, Text: text}
		}
	}
	return out
}

func (anthropic) response(body []byte, model string) (*result, error) {
	var r struct {
		Model      string          `json:"model"`
		Content    []messagesBlock `json:"content"`
		StopReason string          `json:"stop_reason"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	var content blocks
	for _, b := range r.Content {
		switch b.Type {
		case typeText:
			content = append(content, block{Type: typeText, Text: b.Text})
		case typeToolUse:
			content = append(content, block{Type: typeToolUse, ID: b.ID, Name: b.Name, Input: b.Input})
		}
	}
	stop := r.StopReason
	if known, ok := map[string]string{"end_turn": stopEnd, "stop_sequence": stopSequence, "max_tokens": stopTokens, "tool_use": stopTool}[stop]; ok {
		stop = known
	}
	return finished(content, cmp.Or(r.Model, model), stop)
}
