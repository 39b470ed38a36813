package bridge

import (
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/translate"
)

func TestB40AListIsReadOncePerText(t *testing.T) {
	l := newLists()
	result := []byte(`{"resultType":"complete","tools":[{"name":"a","icons":[],"inputSchema":{"type":"object"}}],"ttlMs":1000,"cacheScope":"public"}`)
	known := l.about(mcp.MethodToolsList, result)
	if known.ttl.Milliseconds() != 1000 || !known.public {
		t.Fatalf("lifetime %v, public %v", known.ttl, known.public)
	}
	for range 2 { // found out, then remembered
		for _, version := range mcp.Legacy {
			rules := translate.Rules{Version: version}
			want, err := rules.AppendResult([]byte("head"), mcp.MethodToolsList, result)
			if err != nil {
				t.Fatal(err)
			}
			got, err := known.appendTo([]byte("head"), &rules, mcp.MethodToolsList)
			if err != nil || string(got) != string(want) {
				t.Errorf("%s: %s (%v), want %s", version, got, err, want)
			}
		}
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

func TestAMalformedListIsNotRemembered(t *testing.T) {
	rules := translate.Rules{Version: mcp.V20251125}
	known := newLists().about(mcp.MethodToolsList, []byte(`{"tools":1}`))
	for range 2 {
		if got, err := known.appendTo([]byte("head"), &rules, mcp.MethodToolsList); err == nil || string(got) != "head" {
			t.Errorf("%s, %v", got, err)
		}
	}
}

func TestListsAreBounded(t *testing.T) {
	l := newLists()
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

func BenchmarkKnownToolsList(b *testing.B) {
	list, size := listing(20)
	b.ReportAllocs()
	b.SetBytes(int64(size))
	for b.Loop() {
		list()
	}
}
