package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/mcpbridge/bridge/internal/budget"
)

// params are those of sampling/createMessage, in the members that a model hears of.
// The request may give content as one block or, since 2025-11-25, as several.
type params struct {
	Messages         []message   `json:"messages"`
	SystemPrompt     string      `json:"systemPrompt"`
	ModelPreferences preferences `json:"modelPreferences"`
	MaxTokens        whole       `json:"maxTokens"`
	Temperature      *float64    `json:"temperature"`
	StopSequences    []string    `json:"stopSequences"`
	Tools            []tool      `json:"tools"`
	ToolChoice       struct {
		Mode string `json:"mode"`
	} `json:"toolChoice"`
}

// whole is a whole number in any spelling, such as 1e3 or 1000.0; beyond what an int has everywhere, the nearest that it has.
type whole int

// UnmarshalJSON implements json.Unmarshaler.
func (n *whole) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || v != math.Trunc(v) {
		return errors.New("it is no whole number")
	}
	*n = whole(min(max(v, math.MinInt32), math.MaxInt32))
	return nil
}

type preferences struct {
	Hints []hint `json:"hints"`
}

type hint struct {
	Name string `json:"name"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

type message struct {
	Role    string `json:"role"`
	Content blocks `json:"content"`
}

// blocks is content: an object counts as an array of one.
type blocks []block

// UnmarshalJSON implements json.Unmarshaler.
func (b *blocks) UnmarshalJSON(text []byte) error {
	if text = bytes.TrimSpace(text); len(text) > 0 && text[0] == '[' {
		return json.Unmarshal(text, (*[]block)(b))
	}
	*b = make(blocks, 1)
	return json.Unmarshal(text, &(*b)[0])
}

// MarshalJSON implements json.Marshaler: one block stands alone, as all revisions
// know it.
func (b blocks) MarshalJSON() ([]byte, error) {
	if len(b) == 1 {
		return json.Marshal(b[0])
	}
	return json.Marshal([]block(b))
}

// block is a content block of any kind; Type says which members count.
type block struct {
	Type              string          `json:"type"`
	Text              string          `json:"text,omitempty"`
	Data              string          `json:"data,omitempty"` // base64
	MIMEType          string          `json:"mimeType,omitempty"`
	ID                string          `json:"id,omitempty"` // tool_use
	Name              string          `json:"name,omitempty"`
	Input             json.RawMessage `json:"input,omitempty"`
	ToolUseID         string          `json:"toolUseId,omitempty"` // tool_result
	Content           []block         `json:"content,omitempty"`
	StructuredContent json.RawMessage `json:"structuredContent,omitempty"`
	IsError           bool            `json:"isError,omitempty"`
	URI               string          `json:"uri,omitempty"`      // resource_link
	Resource          *resource       `json:"resource,omitempty"` // resource
}

type resource struct {
	URI  string  `json:"uri"`
	Text *string `json:"text,omitempty"` // nil: it is binary
}

// The types of content blocks.
const (
	typeText       = "text"
	typeImage      = "image"
	typeAudio      = "audio"
	typeToolUse    = "tool_use"
	typeToolResult = "tool_result"
	typeLink       = "resource_link"
	typeResource   = "resource"
)

// MarshalJSON keeps the text of an empty text block.
func (b block) MarshalJSON() ([]byte, error) {
	if b.Type == typeText {
		return json.Marshal(map[string]string{"type": typeText, "text": b.Text})
	}
	type plain block
	return json.Marshal(plain(b))
}

// words returns the text that says what a block of a tool's result does, if there is one.
func (b *block) words() (text string, ok bool) {
	switch {
	case b.Type == typeText:
		return b.Text, true
	case b.Type == typeLink:
		return strings.TrimSpace(b.Name + " " + b.URI), true
	case b.Type == typeResource && b.Resource != nil && b.Resource.Text != nil:
		return *b.Resource.Text, true
	}
	return "", false
}

// plain is a tool's result as a text, for APIs that know no more. Each block that is no text is one that
// other has a text for.
func (b *block) plain(other func(*block) (string, error)) (string, error) {
	if len(b.Content) == 0 && b.StructuredContent != nil {
		return string(b.StructuredContent), nil
	}
	parts := make([]string, len(b.Content))
	for i := range b.Content {
		var ok bool
		if parts[i], ok = b.Content[i].words(); ok {
			continue
		}
		var err error
		if parts[i], err = other(&b.Content[i]); err != nil {
			return "", err
		}
	}
	return strings.Join(parts, "\n"), nil
}

// result is that of sampling/createMessage.
type result struct {
	Role       string `json:"role"`
	Content    blocks `json:"content"`
	Model      string `json:"model"`
	StopReason string `json:"stopReason,omitempty"`
}

const assistant = "assistant"

// The standard stop reasons.
const (
	stopEnd      = "endTurn"
	stopSequence = "stopSequence"
	stopTokens   = "maxTokens"
	stopTool     = "toolUse"
)

// finished makes the result of what an API answered.
func finished(content blocks, model, stop string) (*result, error) {
	if len(content) == 0 {
		if stop == "" {
			return nil, errors.New("no content")
		}
		content = blocks{{Type: typeText}} // such as a model that was cut off at once
	}
	return &result{Role: assistant, Content: content, Model: model, StopReason: stop}, nil
}

// errNothing is for a request that says nothing, which no API takes.
var errNothing = errors.New("the server's sampling request has no content")

func unknown(api, what string) error {
	if len(what) > 40 {
		what = what[:40]
	}
	return fmt.Errorf("the model's API (%s) has no words for content of type %q", api, what)
}

// outline is what a person gets to see of a block that is no text.
func outline(b *block) string { return fmt.Sprintf("[%s, %d bytes]", b.Type, len(b.Data)*3/4) }

// maxPreview bounds what a person gets to see of a request, in bytes.
const maxPreview = 20_000

// Preview writes the params of sampling/createMessage for a person to judge. What that takes is
// charged to held, and may be released at once. The error is a *Failure.
func Preview(raw []byte, held *budget.Hold) (string, error) {
	p, err := read(raw, held)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if p.SystemPrompt != "" {
		fmt.Fprintf(&b, "system: %s\n\n", p.SystemPrompt)
	}
	for i := range p.Messages {
		fmt.Fprintf(&b, "%s:", p.Messages[i].Role)
		for j := range p.Messages[i].Content {
			switch c := &p.Messages[i].Content[j]; c.Type {
			case typeText:
				fmt.Fprintf(&b, " %s", c.Text)
			case typeToolUse:
				fmt.Fprintf(&b, " [calls %s %s]", c.Name, c.Input)
			case typeToolResult:
				text, _ := c.plain(func(b *block) (string, error) { return outline(b), nil }) // which has one for any
				fmt.Fprintf(&b, " [result: %s]", text)
			default:
				fmt.Fprintf(&b, " %s", outline(c))
			}
		}
		b.WriteString("\n\n")
	}
	if b.Len() > maxPreview {
		return strings.ToValidUTF8(b.String()[:maxPreview], "") + "… (the rest is not shown)", nil
	}
	return strings.TrimSpace(b.String()), nil
}
