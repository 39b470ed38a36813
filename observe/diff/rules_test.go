package diff

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write rules.txt anew")

// elsewhere are the rules that the view names besides.
const elsewhere = "B-25 C-12 C.9 D-16 D-17 D-T13 D-T17 D-T4 D-T5 F-2 G-12 G-3 G-5 G-6 J-4 P-4"

// cited returns every rule that a table names.
func cited() []string {
	var ids []string
	for _, rows := range tables {
		for _, r := range rows {
			ids = append(ids, strings.Fields(r.rules)...)
		}
	}
	for _, line := range localRules {
		ids = append(ids, strings.Fields(line)...)
	}
	ids = append(ids, strings.Fields(elsewhere)...)
	for _, r := range slices.Concat(Unheard("notifications/progress"), Unheard("notifications/message"), Unheard("x"),
		Swallowed("notifications/initialized"), Swallowed("notifications/cancelled"), Swallowed("x")) {
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// sentence finds what docs/translation.md says under an id: a line of a list, else the
// beginning of the paragraph that names it.
func sentence(doc, id string) string {
	for _, form := range []string{`(?m)^- \*\*%s\*\* (?:\([^)]*\) )?(.*)$`, `(?s)((?:^|\n\n)[A-Z][A-Za-z ,]*\((?:[A-Z]\.\d+, )?%s[,)].*?)\n\n`, `(?s)\n\n([^\n]*\b%s, .*?)\n\n`} {
		if found := regexp.MustCompile(fmt.Sprintf(form, regexp.QuoteMeta(id))).FindStringSubmatch(doc); found != nil {
			text := strings.Join(strings.Fields(strings.ReplaceAll(found[1], "`", "")), " ")
			if len(text) > mostText {
				text = text[:mostText+strings.IndexByte(text[mostText:]+" ", ' ')] + " …"
			}
			return text
		}
	}
	return ""
}

// mostText is where a paragraph is cut, in bytes.
const mostText = 300

// TestRulesAreThoseOfTheDocument: what the view shows is what the document says.
func TestRulesAreThoseOfTheDocument(t *testing.T) {
	doc, err := os.ReadFile("../../docs/translation.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, id := range cited() {
		text := sentence(string(doc), id)
		if text == "" {
			t.Errorf("docs/translation.md has no rule %s", id)
		}
		fmt.Fprintf(&want, "%s\t%s\n", id, text)
	}
	switch {
	case want.String() == book:
	case *update:
		if err := os.WriteFile("rules.txt", []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("rules.txt is not up to date; run `make docs`")
	}
}

func TestCompare(t *testing.T) {
	for name, tc := range map[string]struct {
		step                  Step
		method, before, after string
		want                  string
	}{
		"a request gets its envelope": {Request, "tools/call", `{"name":"pay","arguments":{"a":1},"_meta":{"progressToken":7}}`,
			`{"name":"pay","arguments":{"a":1},"_meta":{"progressToken":"p1","io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`,
			`changed _meta.progressToken 7→"p1" B-5; added _meta.io.modelcontextprotocol/protocolVersion →"2026-07-28" A-21 B-4`},
		"a retry": {Request, "tools/call", `{"name":"pay"}`, `{"name":"pay","inputResponses":{"a":{}},"requestState":"s"}`,
			`added inputResponses →{1} D-I6 D-I7; added requestState →"s" D-I3 D-I4`},
		"a result": {Result, "tools/call", `{"resultType":"complete","content":[],"structuredContent":[1]}`, `{"content":[{"type":"text"}],"structuredContent":{"result":[1]}}`,
			`removed resultType "complete"→ B-28; added content[0] →{1} B-36; changed structuredContent [1]→{1} B-34`},
		"a tool that is left out": {Result, "tools/list", `{"tools":[{"name":"a"},{"name":"b","icons":[]}]}`, `{"tools":[{"name":"b"}]}`,
			`removed tools[0] {1}→ B-23; removed tools[1].icons [0]→ B.6 P-2`},
		"a question":                        {Question, "elicitation/create", `{"method":"m","params":{"mode":"form"}}`, `{"method":"m","params":{}}`, `removed params.mode "form"→ C.5`},
		"an answer":                         {Answer, "elicitation/create", `{"action":"accept","_meta":{}}`, `{"action":"accept"}`, `removed _meta {0}→ C.9`},
		"an error":                          {Failure, "tools/call", `{"code":-32020,"message":"x"}`, `{"code":-32603,"message":"x"}`, `changed code -32020→-32603 F.2`},
		"arguments are compared as a whole": {Request, "tools/call", `{"arguments":{"secret":1}}`, `{"arguments":{"secret":2}}`, `changed arguments {1}→{1}`},
		"nothing":                           {Result, "tools/call", `{"content":[]}`, `{"content":[]}`, ``},
	} {
		changes, more := Compare(tc.step, tc.method, []byte(tc.before), []byte(tc.after))
		var got []string
		for _, c := range changes {
			var ids []string
			for _, r := range c.Rules {
				ids = append(ids, r.ID)
			}
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s→%s %s", c.Op, c.Path, c.Before, c.After, strings.Join(ids, " "))))
		}
		if text := strings.Join(got, "; "); text != tc.want || more != 0 {
			t.Errorf("%s:\n got %s\nwant %s", name, text, tc.want)
		}
	}
}

func TestChangesAreBounded(t *testing.T) {
	var members []string
	for i := range 3 * Most {
		members = append(members, fmt.Sprintf(`"m%d":1`, i))
	}
	changes, more := Compare(Result, "x", []byte("{"+strings.Join(members, ",")+"}"), []byte("{}"))
	deep := strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000)
	other, _ := Compare(Result, "x", []byte(deep), []byte(strings.Replace(deep, "1", "2", 1)))
	if len(changes) != Most || more != 2*Most || len(other) != 1 {
		t.Errorf("%d changes and %d more, %d", len(changes), more, len(other))
	}
}
