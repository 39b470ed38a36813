package list

import (
	"go/parser"
	"go/token"
	"maps"
	"testing"
)

func TestParseReadsRowsInOrder(t *testing.T) {
	page := "## Other\n1. `a.B`\n## Lock order\n\nWords, `x.Y`.\n\n1. `call.Call`: its flow,\n   `stream.Response.mu`.\n2. `h1.input`\n\n## Next\n3. `c.D`\n"
	got, err := Parse(page)
	if want := (Order{"call.Call": 1, "stream.Response.mu": 1, "h1.input": 2}); err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	for name, page := range map[string]string{
		"no section":   "## Locks\n1. `a.B`\n",
		"wrong number": "## Lock order\n1. `a.B`\n3. `c.D`\n",
		"twice":        "## Lock order\n1. `a.B`\n2. `a.B`\n",
	} {
		if _, err := Parse(page); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestLocksAreNamedByTypeUnlessItHasSeveral(t *testing.T) {
	src := "package p\nimport \"sync\"\ntype One struct { mu sync.Mutex }\ntype two struct { a sync.RWMutex; b sync.Mutex; n int }\ntype none struct{}"
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range Locks(file) {
		names = append(names, l.Name())
	}
	if len(names) != 3 || names[0] != "p.One" || names[1] != "p.two.a" || names[2] != "p.two.b" {
		t.Error(names)
	}
}
