package catalog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/translate"
)

func TestB40AListIsReadOncePerText(t *testing.T) {
	l := newLists(budget.Hold{})
	result := []byte(`{"resultType":"complete","tools":[],"ttlMs":1000,"cacheScope":"public"}`)
	known := l.about(mcp.MethodToolsList, result)
	if known.ttl.Milliseconds() != 1000 || !known.public {
		t.Fatalf("lifetime %v, public %v", known.ttl, known.public)
	}
	if l.about(mcp.MethodToolsList, append([]byte(nil), result...)) != known {
		t.Error("the same text is read again")
	}
	if l.about(mcp.MethodPromptsList, result) == known {
		t.Error("the list of another method is taken for it")
	}
	result[len(result)-3] = 'x' // the caller's memory is its own
	if !strings.Contains(string(known.source), `"public"`) {
		t.Error("what is remembered is not a copy")
	}
}

func TestAListIsShownAsItsRevisionHasIt(t *testing.T) {
	c, req := fresh(), requestOf(mcp.MethodToolsList, `{}`)
	result := []byte(`{"resultType":"complete","tools":[{"name":"a","icons":[],"inputSchema":{"type":"object"}}],"ttlMs":1000}`)
	for range 2 { // found out, then remembered
		for _, version := range mcp.Legacy {
			rules := translate.Rules{Version: version}
			want, err := rules.AppendResult([]byte("head"), mcp.MethodToolsList, result)
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.AppendList([]byte("head"), &rules, "", req, result)
			if err != nil || string(got) != string(want) {
				t.Errorf("%s: %s (%v), want %s", version, got, err, want)
			}
		}
	}
}

// TestEachClientIsToldOfWhatIsLost: of a list that was gone over for another client, too,
// while the revision is told once.
func TestEachClientIsToldOfWhatIsLost(t *testing.T) {
	c, req := fresh(), requestOf(mcp.MethodToolsList, `{}`)
	result := []byte(`{"resultType":"complete","tools":[{"name":"a","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}},` +
		`{"name":"b","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}],"ttlMs":1000}`)
	revision := 0
	for range 3 {
		var told []string
		rules := translate.Rules{Version: mcp.V20250618, Lost: func(string) { revision++ }, LostTo: func(what string) { told = append(told, what) }}
		if _, err := c.AppendList(nil, &rules, "", req, result); err != nil {
			t.Fatal(err)
		}
		if strings.Join(told, " ") != "schema_wrapped" {
			t.Errorf("the client is told of %q", told)
		}
	}
	if revision != 2 {
		t.Errorf("the revision lost %d", revision)
	}
}

func TestAMalformedListIsNotRemembered(t *testing.T) {
	c, rules := fresh(), translate.Rules{Version: mcp.V20251125}
	for range 2 {
		got, err := c.AppendList([]byte("head"), &rules, "", requestOf(mcp.MethodToolsList, `{}`), []byte(`{"tools":1}`))
		if err == nil || string(got) != "head" {
			t.Errorf("%s, %v", got, err)
		}
	}
}

func TestListsAreBounded(t *testing.T) {
	l := newLists(budget.Hold{})
	for i := range 100 {
		l.about(mcp.MethodToolsList, []byte(`{"tools":[],"x":"`+strings.Repeat(string(rune('a'+i%26)), 100<<10+i)+`"}`))
		if l.bytes > maxListBytes {
			t.Fatalf("%d bytes are remembered", l.bytes)
		}
	}
	l.about(mcp.MethodToolsList, make([]byte, maxListSize+1))
	if l.bytes > maxListBytes || len(l.known) == 0 {
		t.Fatalf("%d bytes, %d lists", l.bytes, len(l.known))
	}
}

func TestFactsAboutToolsAreThePrincipalsOwn_Q8_Q10(t *testing.T) {
	c, rules := fresh(), translate.Rules{Version: mcp.V20251125}
	show := func(tool string) {
		if _, err := c.AppendList(nil, &rules, "alice", requestOf(mcp.MethodToolsList, `{}`), []byte(`{"tools":[`+tool+`]}`)); err != nil {
			t.Fatal(err)
		}
	}
	show(`{"name":"a","inputSchema":{"type":"object"},"outputSchema":{"type":"array"},"annotations":{"readOnlyHint":true}}`)
	name := []byte(`"\u0061"`)
	if got := c.Tool("alice", name); got != (Tool{Wrapped: true, Repeatable: true}) {
		t.Errorf("alice's tool: %+v", got)
	}
	if got := c.Tool("bob", name); got != (Tool{}) {
		t.Errorf("bob was told of alice's tool: %+v", got)
	}
	show(`{"name":"a","inputSchema":{"type":"object"}}`)
	if got := c.Tool("alice", name); got != (Tool{}) {
		t.Errorf("after the list changed: %+v", got)
	}
}

// listing returns a function that brings down a list of tools that came before.
func listing(tools int) (f func(), size int) {
	tool := `{"name":"a tool","description":"what it does","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}`
	result := []byte(`{"resultType":"complete","tools":[` + strings.Repeat(tool+",", tools-1) + tool + `]}`)
	c, rules, req := fresh(), translate.Rules{Version: mcp.V20251125}, requestOf(mcp.MethodToolsList, `{}`)
	var dst []byte
	return func() { dst, _ = c.AppendList(dst[:0], &rules, "", req, result) }, len(result)
}

// TestAKnownListCostsNoAllocation is the budget of lists.
func TestAKnownListCostsNoAllocation(t *testing.T) {
	list, _ := listing(20)
	list()
	if got := testing.AllocsPerRun(200, list); got > 0 {
		t.Errorf("%v allocations", got)
	}
}

func BenchmarkKnownToolsList(b *testing.B) {
	list, size := listing(20)
	b.ReportAllocs()
	b.SetBytes(int64(size))
	for b.Loop() {
		list()
	}
}

// However many others there are, made-up tokens among them, what is known for somebody who
// comes again and again stays.
func TestWhoIsManyHasNobodysToolsForgottenThatAreInUse(t *testing.T) {
	c, req, rules := fresh(), requestOf(mcp.MethodToolsList, `{}`), translate.Rules{Version: mcp.V20251125}
	result := []byte(`{"tools":[{"name":"n","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}]}`)
	lists := func(principal string) {
		if _, err := c.AppendList(nil, &rules, principal, req, result); err != nil {
			t.Fatal(err)
		}
	}
	lists("alice")
	for i := range 3 * maxToolAudiences {
		lists(fmt.Sprint("stranger ", i))
		if i%500 == 0 && !c.Tool("alice", []byte(`"n"`)).Wrapped {
			t.Fatalf("after %d others nothing is known of alice's tool", i+1)
		}
	}
	if got := len(c.tools.audiences); got > maxToolAudiences {
		t.Errorf("%d principals are remembered", got)
	}
}

// Clients may see more than the server has sent: what is kept of that is charged, too.
func TestListsAreChargedForWhatClientsSeeOfThem(t *testing.T) {
	memory := budget.New(64 << 20)
	account, err := memory.Open("")
	if err != nil {
		t.Fatal(err)
	}
	c := New(negotiate.NewProber(negotiate.Options{}), account)
	result := []byte(`{"tools":[{"name":"a","inputSchema":{}}` + strings.Repeat(`,{"name":"a","inputSchema":{},"outputSchema":{}}`, 1000) + `]}`)
	for range 2 {
		shown := 0
		for _, version := range []mcp.Version{mcp.V20250618, mcp.V20251125} {
			got, err := c.AppendList(nil, &translate.Rules{Version: version}, "", requestOf(mcp.MethodToolsList, `{}`), result)
			if shown += len(got) - len(result); err != nil {
				t.Fatal(err)
			}
		}
		if want := int64(len(result)*(1+len(mcp.Legacy)) + shown); memory.Used() != want {
			t.Errorf("charged %d bytes, want %d", memory.Used(), want)
		}
	}
}

// A page is as long as a response may be; what is noted of its tools is as much as is remembered.
func TestOfToolsOnlyFactsAreNoted_Q8(t *testing.T) {
	var plain, hinted strings.Builder
	for i := range 2 * maxToolFacts {
		fmt.Fprintf(&plain, `,{"name":"p%d"}`, i)
		fmt.Fprintf(&hinted, `,{"name":"h%d","annotations":{"readOnlyHint":true}}`, i)
	}
	had := func(name string) bool { return name == "p7" }
	if facts := readTools([]byte(`{"tools":[`+plain.String()[1:]+`]}`), had, nil); len(facts) != 1 || facts["p7"] != (Tool{}) {
		t.Errorf("%d tools are noted that are like most", len(facts))
	}
	if facts := readTools([]byte(`{"tools":[`+hinted.String()[1:]+`]}`), had, nil); len(facts) != maxToolFacts {
		t.Errorf("%d tools with facts are noted", len(facts))
	}
}
