package view

import (
	"slices"
	"strings"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe/diff"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/translate"
)

// offer is a tool of the server, and what clients of each revision get of it.
type offer struct {
	Name string
	Of   []share // in the order of the revisions
}

// share is what clients of one revision get of a tool.
type share struct {
	Version string
	Kind    string // whole, changed or nothing
	Text    string
	Rules   []diff.Rule
}

// mostOffers bounds the tools of one page.
const mostOffers = 100

// offers says what clients of each revision get of the tools that the server listed
// lately, and how many more there are.
func (m *Mount) offers() (offers []offer, more int) {
	seen := map[string]bool{}
	for _, list := range m.Tools {
		for tool := range rawjson.Elements(rawjson.Get(list, "tools")) {
			name, _ := rawjson.Name(rawjson.Get(tool, "name"))
			switch {
			case seen[name]:
			case len(offers) >= mostOffers:
				more++
			default:
				offers = append(offers, offer{line(rawjson.Readable(name)), m.shares(tool)})
			}
			seen[name] = true
		}
	}
	slices.SortFunc(offers, func(a, b offer) int { return strings.Compare(a.Name, b.Name) })
	return offers, more
}

// shares says what each revision gets of a tool.
func (m *Mount) shares(tool []byte) (shares []share) {
	list := append(append([]byte(`{"tools":[`), tool...), `]}`...)
	for _, v := range mcp.Legacy {
		s := share{Version: string(v), Kind: "whole", Text: "as it is"}
		rules := m.Rules
		rules.Version, rules.Report = v, func(o translate.Omission) { s.Kind, s.Text = "nothing", "not offered: "+line(o.Reason) }
		shown, err := rules.Result(mcp.MethodToolsList, list)
		changes, _ := diff.Compare(diff.Result, mcp.MethodToolsList, list, shown)
		switch {
		case err != nil:
			s.Kind, s.Text = "nothing", "the list cannot be translated"
		case s.Kind == "whole" && len(changes) > 0:
			s.Kind, s.Text, s.Rules = "changed", worded(changes), changes[0].Rules
		}
		shares = append(shares, s)
	}
	return shares
}

// worded sums changes of a tool up.
func worded(changes []diff.Change) string {
	words := map[diff.Op][]string{}
	for _, c := range changes {
		name := strings.TrimPrefix(c.Path, "tools[0].")
		if !slices.Contains(words[c.Op], name) {
			words[c.Op] = append(words[c.Op], name)
		}
	}
	var said []string
	for _, op := range []struct {
		op   diff.Op
		word string
	}{{diff.Removed, "without "}, {diff.Added, "with "}, {diff.Changed, "other "}} {
		if list := words[op.op]; len(list) > 0 {
			said = append(said, op.word+strings.Join(list[:min(len(list), 5)], ", "))
		}
	}
	return strings.Join(said, "; ")
}
