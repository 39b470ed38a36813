package translate

import (
	"strings"

	"pgregory.net/rapid"

	"github.com/mcpbridge/bridge/mcp"
)

// gen draws messages as JSON text. With a version set it keeps to what that
// revision defines; with V20260728 it uses everything a modern server may send.
type gen struct {
	*rapid.T
	v mcp.Version
}

func (g gen) has(first mcp.Version) bool { return g.v.AtLeast(first) }

func (g gen) pick(options ...string) string {
	return rapid.SampledFrom(options).Draw(g.T, "pick")
}

func (g gen) maybe() bool { return rapid.Bool().Draw(g.T, "maybe") }

// scalar includes what decoding into Go values would spoil.
func (g gen) scalar() string {
	return g.pick(`null`, `true`, `false`, `0`, `-1.50`, `9007199254740993`, `1E+2`, `""`, `"\ud800"`, `"\u003c<&"`,
		`"a \" ] } , \\"`, `"é\u00e9\/"`, `"resultType"`)
}

func (g gen) value(depth int) string {
	if depth == 0 {
		return g.scalar()
	}
	switch g.pick("scalar", "object", "array") {
	case "object":
		return g.object(g.some(`"a":`+g.value(depth-1), `"resultType":`+g.value(depth-1), `"\u0062":`+g.value(depth-1), `"_meta":`+g.value(0))...)
	case "array":
		return g.array(g.some(g.value(depth-1), g.value(depth-1))...)
	}
	return g.scalar()
}

// some keeps a random part of parts.
func (g gen) some(parts ...string) (kept []string) {
	for _, p := range parts {
		if p != "" && g.maybe() {
			kept = append(kept, p)
		}
	}
	return kept
}

func (g gen) space() string { return g.pick("", "", " ", "\n\t") }

// object writes members in a random order with random whitespace.
func (g gen) object(members ...string) string {
	members = rapid.Permutation(members).Draw(g.T, "order")
	return g.join('{', members, '}')
}

func (g gen) array(elements ...string) string { return g.join('[', elements, ']') }

func (g gen) join(open byte, parts []string, end byte) string {
	var b strings.Builder
	b.WriteByte(open)
	for i, p := range parts {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(g.space() + p + g.space())
	}
	if len(parts) == 0 {
		b.WriteString(g.space())
	}
	b.WriteByte(end)
	return b.String()
}

func (g gen) with(required []string, optional ...string) string {
	return g.object(append(required, g.some(optional...)...)...)
}

// since returns part when the revision has it.
func (g gen) since(first mcp.Version, part string) string {
	if g.has(first) {
		return part
	}
	return ""
}

func (g gen) annotations() string {
	return `"annotations":` + g.with(nil, `"audience":["user"]`, `"priority":0.50`, g.since(mcp.V20250618, `"lastModified":"2026-01-01T00:00:00Z"`), `"vendor":`+g.value(1))
}

func (g gen) meta() string {
	return `"_meta":` + g.with(nil, `"acme.example/x":`+g.value(2), `"y":1`)
}

func (g gen) icons() string { return `"icons":[{"src":"https://example.com/i.png"}]` }

func (g gen) block() string {
	kinds := []string{"text", "image", "resource"}
	if g.has(mcp.V20250326) {
		kinds = append(kinds, "audio")
	}
	if g.has(mcp.V20250618) {
		kinds = append(kinds, "resource_link")
	}
	if g.has(mcp.V20260728) {
		kinds = append(kinds, "hologram")
	}
	common := []string{g.annotations(), g.since(mcp.V20250618, g.meta()), `"vendor":` + g.value(2)}
	kind := g.pick(kinds...)
	typ := `"type":"` + kind + `"`
	switch kind {
	case "text":
		return g.with([]string{typ, `"text":` + g.pick(`"x"`, `"\ud800\""`, `"[1]"`)}, common...)
	case "resource":
		return g.with([]string{typ, `"resource":` + g.with([]string{`"uri":"file:///a"`, g.pick(`"text":"t"`, `"blob":"AAAA"`)}, g.since(mcp.V20250618, g.meta()))}, common...)
	case "resource_link":
		return g.with([]string{typ, `"uri":"file:///a"`, `"name":"n"`}, append(common, `"title":"T"`, `"size":3`, g.since(mcp.V20251125, g.icons()))...)
	case "hologram":
		return g.with([]string{typ}, common...)
	}
	return g.with([]string{typ, `"data":"AAAA"`, `"mimeType":"a/b"`}, common...)
}

func (g gen) blocks() string { return g.array(g.some(g.block(), g.block(), g.block())...) }

func (g gen) schema(objectRoot bool) string {
	sub := func() string {
		return g.with(nil, `"type":`+g.pick(`"string"`, `["string","null"]`), `"description":`+g.pick(`"d"`, `"\ud800"`),
			`"default":`+g.value(1), `"$ref":`+g.pick(`"#"`, `"#/$defs/a"`, `"https://example.com/s"`),
			g.since(mcp.V20260728, `"x-mcp-header":"H"`))
	}
	property := sub()
	if g.has(mcp.V20260728) && g.maybe() {
		property = g.pick("true", "false")
	}
	typ := `"type":"object"`
	if !objectRoot {
		typ = g.pick(typ, `"type":"array"`, `"type":["object","null"]`, `"title":"t"`)
	}
	return g.with([]string{typ}, `"properties":`+g.object(`"a":`+property, `"x-mcp-header":`+sub()), `"required":["a"]`,
		`"items":`+sub(), `"allOf":[`+sub()+`]`, `"$defs":{"a":`+sub()+`}`, `"$schema":"https://json-schema.org/draft/2020-12/schema"`)
}

func (g gen) tool() string {
	output := ""
	if g.has(mcp.V20250618) {
		output = `"outputSchema":` + g.schema(!g.has(mcp.V20260728))
	}
	return g.with([]string{`"name":"t"`, `"inputSchema":` + g.schema(true)}, `"description":"d"`, `"vendor":`+g.value(2),
		g.since(mcp.V20250326, `"annotations":`+g.with(nil, `"title":"A"`, `"readOnlyHint":true`)),
		g.since(mcp.V20250618, `"title":"T"`), g.since(mcp.V20250618, g.meta()), g.since(mcp.V20251125, g.icons()), output)
}

func (g gen) listed(required ...string) string {
	return g.with(required, `"description":"d"`, `"vendor":`+g.value(1), g.since(mcp.V20250618, `"title":"T"`),
		g.since(mcp.V20250618, g.meta()), g.since(mcp.V20251125, g.icons()))
}

// resultTypes are the legacy definitions of results, by method.
var resultTypes = map[string]string{
	mcp.MethodToolsCall:              "CallToolResult",
	mcp.MethodToolsList:              "ListToolsResult",
	mcp.MethodPromptsList:            "ListPromptsResult",
	mcp.MethodPromptsGet:             "GetPromptResult",
	mcp.MethodResourcesList:          "ListResourcesResult",
	mcp.MethodResourcesTemplatesList: "ListResourceTemplatesResult",
	mcp.MethodResourcesRead:          "ReadResourceResult",
	mcp.MethodComplete:               "CompleteResult",
}

func (g gen) payload(method string) []string {
	switch method {
	case mcp.MethodToolsCall:
		return []string{`"content":` + g.blocks()}
	case mcp.MethodToolsList:
		return []string{`"tools":` + g.array(g.some(g.tool(), g.tool())...)}
	case mcp.MethodPromptsList:
		argument := g.with([]string{`"name":"a"`}, `"required":true`, g.since(mcp.V20250618, `"title":"A"`))
		prompt := g.listed(`"name":"p"`, `"arguments":[`+argument+`]`)
		return []string{`"prompts":` + g.array(g.some(prompt)...)}
	case mcp.MethodPromptsGet:
		return []string{`"messages":[` + g.object(`"role":"user"`, `"content":`+g.block()) + `]`}
	case mcp.MethodResourcesList:
		return []string{`"resources":` + g.array(g.listed(`"name":"n"`, `"uri":"file:///a"`, g.annotations()))}
	case mcp.MethodResourcesTemplatesList:
		return []string{`"resourceTemplates":` + g.array(g.listed(`"name":"n"`, `"uriTemplate":"file:///{a}"`))}
	case mcp.MethodResourcesRead:
		return []string{`"contents":` + g.array(g.with([]string{`"uri":"file:///a"`, `"text":"t"`}, g.since(mcp.V20250618, g.meta())))}
	}
	return []string{`"completion":` + g.with([]string{`"values":["a"]`}, `"total":3`)}
}

// result draws a complete result of method.
func (g gen) result(method string) string {
	optional := []string{`"vendor":` + g.value(3), g.meta()}
	if method == mcp.MethodToolsCall {
		optional = append(optional, `"isError":false`)
		if g.has(mcp.V20260728) {
			optional = append(optional, `"structuredContent":`+g.value(2))
		} else if g.has(mcp.V20250618) {
			optional = append(optional, `"structuredContent":`+g.object(g.some(`"result":`+g.value(1))...))
		}
	}
	if g.has(mcp.V20260728) {
		optional[1] = `"_meta":` + g.with(nil, `"acme.example/x":`+g.value(2), `"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}`, `"io.modelcontextprotocol\/subscriptionId":3`)
		optional = append(optional, `"resultType":"complete"`, `"ttlMs":5`, `"cacheScope":"public"`, `"requestState":"s"`, `"inputRequests":{}`)
	}
	return g.with(g.payload(method), optional...)
}

func (g gen) method() string {
	return g.pick(mcp.MethodToolsCall, mcp.MethodToolsCall, mcp.MethodToolsList, mcp.MethodToolsList, mcp.MethodPromptsList,
		mcp.MethodPromptsGet, mcp.MethodResourcesList, mcp.MethodResourcesTemplatesList, mcp.MethodResourcesRead, mcp.MethodComplete)
}
