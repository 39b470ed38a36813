package translate

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mcpbridge/bridge/mcp"
)

// definitions are the validators of one revision's published schema, by name.
type definitions struct {
	mu        sync.Mutex
	root      map[string]any
	container string // "definitions" or "$defs"
	resolved  map[string]*jsonschema.Resolved
}

var published = sync.OnceValue(func() map[mcp.Version]*definitions {
	all := map[mcp.Version]*definitions{}
	for _, v := range mcp.Legacy {
		text, err := os.ReadFile("testdata/schema/" + string(v) + ".json")
		if err != nil {
			panic(err)
		}
		d := &definitions{resolved: map[string]*jsonschema.Resolved{}}
		if err := json.Unmarshal(text, &d.root); err != nil {
			panic(err)
		}
		d.container = "definitions"
		if _, ok := d.root["$defs"]; ok {
			d.container = "$defs"
		}
		all[v] = d
	}
	return all
})

func (d *definitions) get(name string) (*jsonschema.Resolved, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.resolved[name]; r != nil {
		return r, nil
	}
	root := maps.Clone(d.root)
	root["$ref"] = "#/" + d.container + "/" + name
	text, err := json.Marshal(root)
	if err != nil {
		return nil, err
	}
	// The published unions carry anyOf and type side by side; both are checked.
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	r, err := s.Resolve(nil)
	if err != nil {
		return nil, err
	}
	d.resolved[name] = r
	return r, nil
}

// tester is what testing.T and rapid.T have in common.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// conforms checks message against a definition of the revision's own schema.
func conforms(t tester, v mcp.Version, name string, message []byte) {
	t.Helper()
	r, err := published()[v].get(name)
	if err != nil {
		t.Fatalf("schema %s of %s: %v", name, v, err)
	}
	var value any
	if err := json.Unmarshal(message, &value); err != nil {
		t.Fatalf("not JSON: %v: %s", err, message)
	}
	if err := r.Validate(value); err != nil {
		t.Errorf("%s is no %s of %s: %v", message, name, v, err)
	}
}

// The validator itself must be able to tell right from wrong.
func TestConforms(t *testing.T) {
	bad := map[string]string{
		"CallToolResult":   `{"content":[{"type":"video"}]}`,
		"ListToolsResult":  `{"tools":[{"name":"a","inputSchema":{"type":"array"}}]}`,
		"InitializeResult": `{"protocolVersion":"x","capabilities":{},"serverInfo":{"name":"a"}}`,
	}
	for _, v := range mcp.Legacy {
		for _, name := range slices.Sorted(maps.Keys(bad)) {
			var r recorder
			conforms(&r, v, name, []byte(bad[name]))
			if len(r.errors) == 0 {
				t.Errorf("%s: %s was accepted as %s", v, bad[name], name)
			}
		}
	}
}

type recorder struct{ errors []string }

func (r *recorder) Helper()                   {}
func (r *recorder) Errorf(f string, _ ...any) { r.errors = append(r.errors, f) }
func (r *recorder) Fatalf(f string, _ ...any) { panic(f) }
func (r *recorder) String() string            { return strings.Join(r.errors, "\n") }
