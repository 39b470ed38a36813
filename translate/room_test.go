package translate

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/mcp"
)

// purse is a Held with so many bytes to spend.
type purse struct{ limit, now, most, told int }

var errPoor = errors.New("not so much")

func (p *purse) Set(bytes int) error {
	p.told++
	if bytes > p.limit {
		return errPoor
	}
	p.now, p.most = bytes, max(p.most, bytes)
	return nil
}

// held translates a payload, charged to a purse.
func held(version mcp.Version, method, payload string, p *purse) (out []byte, err error) {
	rules := Rules{Version: version, Held: p}
	if _, asks := mcp.InputKindOf(method); asks {
		return rules.InputRequest(method, []byte(payload), []byte(`{"sampling":{"tools":{}}}`))
	}
	return rules.AppendResult([]byte("head"), method, []byte(payload))
}

// Each of these is small in many parts, and takes several times its size.
var manyParts = map[string]struct {
	version mcp.Version
	method  string
	payload func(n int) string
}{
	"blocks that become texts": {r24, mcp.MethodToolsCall, func(n int) string {
		return `{"content":[{"type":"text","text":""}` + strings.Repeat(`,{"type":"q"}`, n) + `]}`
	}},
	"schemas that are wrapped": {r25c, mcp.MethodToolsList, func(n int) string {
		return `{"tools":[{"name":"a","inputSchema":{}}` + strings.Repeat(`,{"name":"a","inputSchema":{},"outputSchema":{}}`, n) + `]}`
	}},
	"tools that are left out": {r25c, mcp.MethodToolsList, func(n int) string {
		return `{"tools":[{"name":"a","inputSchema":{}}` + strings.Repeat(`,0`, n) + `]}`
	}},
	"references": {r25c, mcp.MethodToolsList, func(n int) string {
		return `{"tools":[{"name":"a","inputSchema":{},"outputSchema":{"anyOf":[{}` + strings.Repeat(`,{"$ref":"#"}`, n) + `]}}]}`
	}},
	"one large block": {r24, mcp.MethodToolsCall, func(n int) string {
		return `{"content":[{"type":"q","q":"` + strings.Repeat(`\"`, n) + `"}]}`
	}},
	"structured content": {r24, mcp.MethodToolsCall, func(n int) string {
		return `{"content":[],"structuredContent":["a"` + strings.Repeat(`,""`, n) + `]}`
	}},
	"messages that are split": {r25b, mcp.MethodSamplingCreateMessage, func(n int) string {
		return `{"maxTokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"a"}` + strings.Repeat(`,{"type":"text","text":"a"}`, n) + `]}]}`
	}},
	"options with titles": {r25b, mcp.MethodElicitationCreate, func(n int) string {
		return `{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string","oneOf":[{"const":"a"}` + strings.Repeat(`,{"const":"a"}`, n) + `]}}}}`
	}},
}

func TestWhatATranslationTakesIsCharged(t *testing.T) {
	for name, tt := range manyParts {
		payload := tt.payload(100_000)
		p := &purse{limit: 1 << 30}
		out, err := held(tt.version, tt.method, payload, p)
		if err != nil || p.most < len(payload) {
			t.Errorf("%s: %d bytes are charged %d: %v", name, len(payload), p.most, err)
		}
		out = bytes.TrimPrefix(out, []byte("head"))
		if grown := max(0, len(out)-len(payload)); p.now != grown {
			t.Errorf("%s: then %d, of a result that is longer by %d", name, p.now, grown)
		}
		if len(turns) != 0 {
			t.Errorf("%s: a turn is held on to", name)
		}
	}
}

func TestATranslationForWhichThereIsNoMemoryIsRefused(t *testing.T) {
	for name, tt := range manyParts {
		payload := tt.payload(100_000)
		p := &purse{limit: 1 << 30}
		if _, err := held(tt.version, tt.method, payload, p); err != nil {
			t.Fatal(err)
		}
		for _, part := range []int{2, 4, 100} {
			poor := &purse{limit: p.most / part}
			out, err := held(tt.version, tt.method, payload, poor)
			if !errors.Is(err, errPoor) || string(out) != "" && string(out) != "head" {
				t.Errorf("%s, with a part of %d: %d bytes, %v", name, part, len(out), err)
			}
			if poor.now != 0 || len(turns) != 0 {
				t.Errorf("%s, with a part of %d: %d bytes stay charged, %d turns", name, part, poor.now, len(turns))
			}
		}
	}
}

func TestNobodyIsToldOfSmallTranslations(t *testing.T) {
	for name, tt := range manyParts {
		p := &purse{}
		if _, err := held(tt.version, tt.method, tt.payload(100), p); err != nil || p.told > 0 {
			t.Errorf("%s: told %d times, %v", name, p.told, err)
		}
	}
}

// To give its options names no text is kept of a form that nobody could fill in.
func TestALargeFormWithMultiSelectsIsNotAsked_C5(t *testing.T) {
	form := func(n int) []byte {
		return []byte(`{"message":"m","requestedSchema":{"type":"object","properties":{"m":{"type":"array","items":{"enum":["a"]}}` +
			fields(n) + `}}}`)
	}
	for n, asked := range map[int]bool{maxMultiForm - 1: true, maxMultiForm: false} {
		_, err := Rules{Version: r25b}.InputRequest(mcp.MethodElicitationCreate, form(n), nil)
		if _, refused := errors.AsType[*Unexpressible](err); refused == asked {
			t.Errorf("%d fields besides: %v", n, err)
		}
	}
}

func fields(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`,"f` + strings.Repeat("x", i/26) + string(rune('a'+i%26)) + `":{"type":"string"}`)
	}
	return b.String()
}
