package demo

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fill answers the details form with scripted lines and returns what was shown.
func fill(t *testing.T, typed string) (*mcp.ElicitResult, string) {
	t.Helper()
	var shown strings.Builder
	s := &screen{out: &shown, width: func() int { return 80 }}
	p := &prompter{screen: s, lines: readLines(t.Context(), strings.NewReader(typed))}
	res, err := p.ask(t.Context(), &mcp.ElicitParams{Message: "Which seat?", RequestedSchema: json.RawMessage(detailsForm)})
	if err != nil {
		t.Fatal(err)
	}
	for range p.lines { // the rest of the script: the reader must end
	}
	return res, shown.String()
}

func TestEnterTakesTheDefaults(t *testing.T) {
	res, _ := fill(t, "\n\n\n")
	want := map[string]any{"seat": "window", "bags": 1.0, "confirm": true}
	if res.Action != accept || !reflect.DeepEqual(res.Content, want) {
		t.Errorf("got %v %v, want %v", res.Action, res.Content, want)
	}
}

func TestUnusableAnswersAreAskedAgain(t *testing.T) {
	res, shown := fill(t, "7\n2\nmany\n9\n0\nperhaps\nn\n")
	want := map[string]any{"seat": "aisle", "bags": 0.0, "confirm": false}
	if res.Action != accept || !reflect.DeepEqual(res.Content, want) {
		t.Errorf("got %v %v, want %v", res.Action, res.Content, want)
	}
	for _, says := range []string{"Please type a number from 1 to 2.", "Please type a whole number.", "Please type a number from 0 to 3.", "Please type y or n."} {
		if !strings.Contains(shown, says) {
			t.Errorf("the screen lacks %q:\n%s", says, shown)
		}
	}
}

func TestDeclineCancelAndTheEndOfInput(t *testing.T) {
	for typed, want := range map[string]string{"d\n": decline, "1\nC\n": cancel, "": cancel, "1\n": cancel} {
		if res, shown := fill(t, typed); res.Action != want || res.Content != nil {
			t.Errorf("typed %q: %v %v, want %s\n%s", typed, res.Action, res.Content, want, shown)
		}
	}
}

func TestAnEndedCallEndsItsQuestion(t *testing.T) {
	in, typing := io.Pipe()
	p := &prompter{screen: &screen{out: io.Discard}, lines: readLines(t.Context(), in)}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err := p.ask(ctx, &mcp.ElicitParams{RequestedSchema: json.RawMessage(detailsForm)})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	_ = typing.Close()
	for range p.lines {
	}
}

func TestThePromptTellsHowToAnswer(t *testing.T) {
	_, shown := fill(t, "\n\n\n")
	for _, says := range []string{"Which seat?", "d declines, c cancels", "1) Window", "Checked bags (from 0 to 3, Enter = 1): ", "(y/n, Enter = y)"} {
		if !strings.Contains(shown, says) {
			t.Errorf("the prompt lacks %q:\n%s", says, shown)
		}
	}
}
