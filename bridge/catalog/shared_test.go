package catalog

import (
	"strconv"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/mcp"
)

func TestEqualTextsAreShared(t *testing.T) {
	var shared Catalog
	said := []byte(`{"name":"a"}`)
	first, second := shared.Share(said), shared.Share([]byte(`{"name":"a"}`))
	if &first[0] != &second[0] || &first[0] == &said[0] {
		t.Error("equal texts are not one copy")
	}
	if other := shared.Share([]byte(`{"name":"b"}`)); string(other) != `{"name":"b"}` {
		t.Errorf("got %s", other)
	}
	if got := shared.Share(nil); got != nil {
		t.Errorf("nothing became %q", got)
	}
}

// Whoever says the same in another revision may mean something else.
func TestEqualClientsShareTheirDeclaration(t *testing.T) {
	var c Catalog
	declare := func(v mcp.Version, capabilities string) *Declaration {
		return c.Declare(v, []byte(`{"name":"a"}`), []byte(capabilities))
	}
	first := declare(mcp.V20251125, `{"elicitation":{}}`)
	if declare(mcp.V20251125, `{"elicitation":{}}`) != first {
		t.Error("equal clients have a declaration each")
	}
	for _, other := range []*Declaration{declare(mcp.V20250326, `{"elicitation":{}}`), declare(mcp.V20251125, `{}`), Undeclared} {
		if other == first || string(other.Capable) == string(first.Capable) {
			t.Errorf("another one declares %s", other.Capable)
		}
	}
}

func TestSharedTextsAreBounded(t *testing.T) {
	var c Catalog
	shared := &c.texts
	for i := range 3 * maxTexts {
		if text := strconv.Itoa(i); string(c.Share([]byte(text))) != text || len(shared.known) > maxTexts {
			t.Fatalf("%d texts are known after %s", len(shared.known), text)
		}
	}
	for i := range 100 {
		c.Share([]byte(strconv.Itoa(i) + strings.Repeat("x", maxTextSize-2)))
		if shared.bytes > maxTextBytes {
			t.Fatalf("%d bytes are known", shared.bytes)
		}
	}
	if long := strings.Repeat("x", maxTextSize+1); string(c.Share([]byte(long))) != long || shared.known[long] != nil {
		t.Error("a long text is known")
	}
}
