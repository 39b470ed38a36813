package demo

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The actions of an answer to an elicitation.
const (
	accept  = "accept"
	decline = "decline"
	cancel  = "cancel"
)

// prompter asks a person for the answers to a form.
type prompter struct {
	screen *screen
	lines  <-chan string // closed at the end of the input
}

// readLines reads lines until in or ctx ends. A read from a terminal cannot be
// interrupted, so the goroutine may wait for one more line after ctx.
func readLines(ctx context.Context, in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		scan := bufio.NewScanner(in)
		for scan.Scan() {
			select {
			case lines <- strings.TrimSpace(scan.Text()):
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

// ask shows a form and reads the answers. The end of the input counts as
// cancel. The error is that of ctx.
func (p *prompter) ask(ctx context.Context, req *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	f, err := newForm(req.RequestedSchema)
	if err != nil {
		return nil, err
	}
	p.screen.hold()
	defer p.screen.release()
	p.screen.print("\n")
	p.screen.say(green, "   ", "The server asks you, through the old client: "+clip(req.Message))
	p.screen.say(dim, "   ", "Enter takes the default. d declines, c cancels.")
	content := map[string]any{}
	for _, field := range f.fields {
		value, action, err := p.field(ctx, field)
		if err != nil {
			return nil, err
		}
		if action != accept {
			p.screen.print("\n")
			return &mcp.ElicitResult{Action: action}, nil
		}
		if value != nil {
			content[field.name] = value
		}
	}
	p.screen.print("\n")
	return &mcp.ElicitResult{Action: accept, Content: content}, nil
}

// field asks for one field until the answer is usable. A nil value leaves the
// field out.
func (p *prompter) field(ctx context.Context, f field) (value any, action string, err error) {
	for i, o := range f.options {
		p.screen.say(plain, "     ", fmt.Sprintf("%d) %s", i+1, clip(o.title)))
	}
	question := f.title
	if f.description != "" && f.description != f.title {
		question += ", " + f.description
	}
	for {
		p.screen.print("   " + p.screen.paint(bold, question) + f.hint() + ": ")
		text, ok, err := p.line(ctx)
		switch {
		case err != nil:
			p.screen.mute() // before the question is gone
			return nil, "", err
		case !ok:
			p.screen.print("\n")
			p.screen.say(dim, "   ", "The input ended: cancelled.")
			return nil, cancel, nil
		case text == "d" || text == "D":
			return nil, decline, nil
		case text == "c" || text == "C":
			return nil, cancel, nil
		case text == "" && f.fallback != nil:
			return f.fallback, accept, nil
		case text == "" && !f.required:
			return nil, accept, nil
		case text == "":
			p.screen.say(yellow, "   ", "Please fill this in.")
			continue
		}
		value, err := f.parse(text)
		if err == nil {
			return value, accept, nil
		}
		p.screen.say(yellow, "   ", upper(err.Error())+".")
	}
}

// line reads one line; ok is false at the end of the input.
func (p *prompter) line(ctx context.Context) (text string, ok bool, err error) {
	select {
	case text, ok = <-p.lines:
		return text, ok, nil
	case <-ctx.Done():
		return "", false, ctx.Err()
	}
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// answer fills a form in without a person and says so.
func answer(s *screen, req *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	f, err := newForm(req.RequestedSchema)
	if err != nil {
		return nil, err
	}
	content := map[string]any{}
	var said []string
	for _, field := range f.fields {
		content[field.name] = field.auto()
		said = append(said, fmt.Sprintf("%s: %v", field.title, content[field.name]))
	}
	s.say(dim, pad(gutter), "(nobody at a terminal, the demo answers itself. "+strings.Join(said, ", ")+")")
	return &mcp.ElicitResult{Action: accept, Content: content}, nil
}
