package catalog

import (
	"fmt"
	"strings"
	"testing"
)

// pageOf returns a list of tools with a fact each.
func pageOf(names ...string) *list {
	var tools []string
	for _, name := range names {
		tools = append(tools, fmt.Sprintf(`{"name":%q,"annotations":{"readOnlyHint":true}}`, name))
	}
	source := `{"tools":[` + strings.Join(tools, ",") + `]}`
	return &list{source: []byte(source), key: listKey{hash: uint64(len(source))}}
}

func (b *toolbox) check(t *testing.T) {
	t.Helper()
	size := 0
	for audience, known := range b.audiences {
		size += known.size
		texts := 0
		for name := range known.facts {
			texts += len(name) + entryCost
		}
		for cursor := range known.pages {
			texts += len(cursor) + entryCost
		}
		if texts != known.size || texts > maxToolsSize+maxCursor+maxToolName+2*entryCost {
			t.Errorf("%s has %d bytes and counts %d", audience, texts, known.size)
		}
	}
	if size != b.size || size > maxToolboxSize {
		t.Errorf("all have %d bytes, and %d are counted", size, b.size)
	}
}

// What is remembered of tools is bounded in bytes, whatever servers call them, and whoever asks.
func TestNamesOfToolsAreBoundedInBytes(t *testing.T) {
	b := newToolbox()
	b.learn("somebody", nil, pageOf("short", strings.Repeat("x", maxToolName+1)), nil)
	if !b.about("somebody", []byte(`"short"`)).Repeatable {
		t.Error("a tool beside one with a long name is not known")
	}
	if len(b.audiences["somebody"].facts) != 1 {
		t.Error("a long name is kept")
	}
	b.check(t)
	b.learn("somebody", nil, pageOf("short", "another"), nil)
	b.learn("somebody", []byte(`"`+strings.Repeat("c", maxCursor)+`"`), pageOf("a third"), nil)
	b.check(t)
	var many []string
	for i := range 2 * maxToolsSize / maxToolName {
		many = append(many, fmt.Sprintf("%d%s", i, strings.Repeat("x", maxToolName-10)))
	}
	for i := range 2 * maxToolboxSize / maxToolsSize {
		b.learn(fmt.Sprint(i), nil, pageOf(many...), nil)
	}
	b.check(t)
	last := fmt.Sprint(2*maxToolboxSize/maxToolsSize - 1)
	if b.audiences[last] == nil || b.audiences["0"] != nil {
		t.Error("those that were not used for longest are not the ones that went")
	}
}

func TestFactsAreOfOneTool(t *testing.T) {
	b := newToolbox()
	source := `{"tools":[{"name":"\ud800","annotations":{"readOnlyHint":true}},{"name":"\ud801"}]}`
	b.learn("somebody", nil, &list{source: []byte(source), key: listKey{hash: 1}}, nil)
	if !b.about("somebody", []byte(`"\uD800"`)).Repeatable || b.about("somebody", []byte(`"\ud801"`)).Repeatable || b.about("somebody", []byte(`"\ufffd"`)).Repeatable {
		t.Error("names that differ in half a character are taken for one tool")
	}
}
