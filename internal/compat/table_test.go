package compat

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/bridge/mcp"
)

const (
	document = "../../docs/compatibility.md"
	begin    = "<!-- Written by: go test ./internal/compat -update -->\n"
	end      = "<!-- End of what was written -->\n"
)

var groups = []group{connecting, serverData, tools, output, content, questions, sampling, elsewhere, alongTheWay, tasks, errorRows}

// cells collects what the exchanges showed.
type cells struct {
	mu    sync.Mutex
	found map[string]cell // by group, feature and version
}

func key(g *group, f *feature, v mcp.Version) string { return g.title + "/" + f.name + "/" + string(v) }

// TestFeatures runs every feature as a real exchange with a client of every
// revision and compares the table of docs/compatibility.md with what it saw.
func TestFeatures(t *testing.T) {
	seen := &cells{found: map[string]cell{}}
	t.Run("exchange", func(t *testing.T) {
		for i := range groups {
			for k := range groups[i].features {
				for n, version := range mcp.Legacy {
					g, f := &groups[i], &groups[i].features[k]
					t.Run(f.name+"/"+string(version), func(t *testing.T) {
						t.Parallel()
						c := f.try(t, version)
						if want := kind(f.kinds[n]); c.kind != want {
							t.Errorf("the cell is of kind %c, want %c: %s", c.kind, want, c)
						}
						seen.mu.Lock()
						defer seen.mu.Unlock()
						seen.found[key(g, f, version)] = c
					})
				}
			}
		}
	})
	if t.Failed() {
		return
	}
	compare(t, seen)
}

func (f *feature) try(t *testing.T, version mcp.Version) cell {
	w := newWorld(t, version, f.options)
	if f.script != nil {
		f.script(w.server)
	}
	w.open()
	return f.run(w)
}

// compare holds the table of the document against what was seen. A run of
// chosen subtests has not seen everything and compares nothing.
func compare(t *testing.T, seen *cells) {
	table, complete := render(seen)
	if !complete {
		t.Log("not every feature was tried: the document is not compared")
		return
	}
	text := readFile(t, document)
	head, rest, ok := strings.Cut(text, begin)
	old, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks the marks of the table", document)
	}
	switch {
	case old == table:
	case *update:
		if err := os.WriteFile(document, []byte(head+begin+table+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is out of date; go test ./internal/compat -update writes:\n%s", document, table)
	}
}

func render(seen *cells) (table string, complete bool) {
	var b strings.Builder
	complete = true
	for i := range groups {
		g := &groups[i]
		fmt.Fprintf(&b, "\n## %s\n\n| feature |", g.title)
		for _, v := range mcp.Legacy {
			fmt.Fprintf(&b, " %s |", v)
		}
		b.WriteString(" how, or what instead | rules |\n|" + strings.Repeat(" --- |", len(mcp.Legacy)+3) + "\n")
		for k := range g.features {
			f := &g.features[k]
			row := make([]cell, len(mcp.Legacy))
			fmt.Fprintf(&b, "| %s |", f.name)
			for n, v := range mcp.Legacy {
				c, ok := seen.found[key(g, f, v)]
				complete = complete && ok
				row[n] = c
				fmt.Fprintf(&b, " %s |", c)
			}
			fmt.Fprintf(&b, " %s | %s |\n", notes(row), f.rules)
		}
	}
	return b.String() + "\n", complete
}

// notes says how the cells of a row come about: once when that is the same for
// all, else by revision.
func notes(row []cell) string {
	var parts []string
	for from := 0; from < len(row); {
		to := from
		for to+1 < len(row) && row[to+1].how == row[from].how {
			to++
		}
		if row[from].how != "" {
			parts = append(parts, span(from, to)+row[from].how)
		}
		from = to + 1
	}
	if len(parts) == 1 {
		_, how, _ := strings.Cut(parts[0], ": ")
		return how
	}
	return strings.Join(parts, "; ")
}

// span names the revisions from one to another.
func span(from, to int) string {
	switch last := len(mcp.Legacy) - 1; {
	case from == to:
		return string(mcp.Legacy[from]) + ": "
	case from == 0:
		return "until " + string(mcp.Legacy[to]) + ": "
	case to == last:
		return "from " + string(mcp.Legacy[from]) + ": "
	}
	return string(mcp.Legacy[from]) + " to " + string(mcp.Legacy[to]) + ": "
}
