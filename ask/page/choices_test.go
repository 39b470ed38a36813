package page_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcpbridge/bridge/ask/page"
)

// odd are options of which browsers, and whoever trims what people write, make others.
var odd = []string{"a", "a ", " a", "", " ", "x\ny", "x\r\ny", "x\ry", "\x00", "\uFFFD", "0", "1", `"><b>`}

var offered = regexp.MustCompile(`(?s)<(?:option|input type="checkbox" id="[^"]*" name="f0") value="([^"]*)"[^>]*>([^<]*)(?:<label[^>]*><bdi>([^<]*))?`)

// The option that a person chooses is the one that the server gets, whatever its text.
func TestTheOptionThatIsChosenIsTheAnswer(t *testing.T) {
	texts, _ := json.Marshal(odd)
	for kind, field := range map[string]string{
		"one":     `{"type":"string","enum":` + string(texts) + `}`,
		"several": `{"type":"array","items":{"type":"string","enum":` + string(texts) + `}}`,
	} {
		form := parsed(t, `{"properties":{"e":`+field+`},"required":["e"]}`)
		for i, want := range odd {
			d, c := newDesk(t, 10), browser(t)
			link := d.ask(page.Question{Server: "Files", Form: form})
			_, body := get(t, c, link)
			options := offered.FindAllStringSubmatch(body, -1)
			if kind == "one" {
				options = options[1:] // which chooses none
			}
			if len(options) != len(odd) {
				t.Fatalf("%s: %d options\n%s", kind, len(options), body)
			}
			status, _ := post(t, c, link, hidden.FindStringSubmatch(body)[1], "f0="+url.QueryEscape(submitted(options[i][1])), "accept")
			var answer struct{ Content struct{ E any } }
			_ = json.Unmarshal([]byte(d.answered()), &answer)
			got := answer.Content.E
			if list, ok := got.([]any); ok && len(list) == 1 {
				got = list[0]
			}
			if status != http.StatusOK || got != want {
				t.Errorf("%s of several: %q was chosen, and %q is the answer (%d)", kind, want, got, status)
			}
		}
	}
}

// P-6: options may differ in half a character, which no page can show.
func TestOptionsKeepHalvesOfCharactersApart(t *testing.T) {
	for kind, field := range map[string]string{
		`"%s"`:   `{"type":"string","enum":["\ufffd","\ud800","\ud801"]}`,
		`["%s"]`: `{"type":"array","items":{"anyOf":[{"const":"\ufffd"},{"const":"\ud800"},{"const":"\ud801"}]}}`,
	} {
		for i, want := range []string{"\uFFFD", `\ud800`, `\ud801`} {
			d, c := newDesk(t, 10), browser(t)
			link := d.ask(page.Question{Server: "Files", Form: parsed(t, `{"properties":{"e":`+field+`}}`)})
			_, body := get(t, c, link)
			for _, shown := range []string{`\ud800`, `\ud801`} {
				if !strings.Contains(body, "\uFFFD (&#34;"+shown+"&#34;)") || !utf8.ValidString(body) {
					t.Errorf("%s cannot be told from others: %s", shown, body)
				}
			}
			status, _ := post(t, c, link, hidden.FindStringSubmatch(body)[1], fmt.Sprint("f0=", i), "accept")
			if got := d.answered(); status != http.StatusOK || got != `{"action":"accept","content":{"e":`+fmt.Sprintf(kind, want)+`}}` {
				t.Errorf("option %d: %d %s", i, status, got)
			}
		}
	}
}

// submitted is what a browser makes of the value of an option: each line break is two bytes.
func submitted(value string) string {
	value = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(html.UnescapeString(value))
	return strings.ReplaceAll(value, "\n", "\r\n")
}

// Two options never look the same, though a page shows no blanks at the ends.
func TestOptionsCanBeToldApart(t *testing.T) {
	for name, field := range map[string]string{
		"one":     `{"type":"string","oneOf":[{"const":"all","title":"Delete"},{"const":"none","title":" Delete"},{"const":"c","title":"Keep"},{"const":" "}]}`,
		"several": `{"type":"array","items":{"anyOf":[{"const":"all","title":"Delete"},{"const":"none","title":" Delete"},{"const":"c","title":"Keep"},{"const":" "}]}}`,
	} {
		d, c := newDesk(t, 10), browser(t)
		_, body := get(t, c, d.ask(page.Question{Server: "Files", Form: parsed(t, `{"properties":{"e":`+field+`}}`)}))
		var shown []string
		for _, o := range offered.FindAllStringSubmatch(body, -1) {
			if title := strings.TrimSpace(html.UnescapeString(o[2] + o[3])); title != "Please choose" {
				shown = append(shown, title)
			}
		}
		if got := fmt.Sprintf("%q", shown); got != `["Delete (\"all\")" "Delete (\"none\")" "Keep" "\" \""]` {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// What names no option of the page's form is not one, and none is none.
func TestOnlyTheOptionsOfThePageCanBeChosen(t *testing.T) {
	d, c := newDesk(t, 10), browser(t)
	link := d.ask(page.Question{Server: "Files", Form: parsed(t, `{"properties":{"e":{"type":"string","enum":["","b"]}},"required":["e"]}`)})
	guard := guardOf(t, c, link)
	for _, given := range []string{"2", "-1", "b", "00000000000000000001x"} {
		if status, _ := post(t, c, link, guard, "f0="+given, "accept"); status != http.StatusBadRequest {
			t.Errorf("%s: %d", given, status)
		}
	}
	if status, body := post(t, c, link, guard, "f0=", "accept"); status != http.StatusUnprocessableEntity || !strings.Contains(body, "Please fill this in.") {
		t.Errorf("none: %d", status)
	}
	if status, _ := post(t, c, link, guard, "f0=0", "accept"); status != http.StatusOK || d.answered() != `{"action":"accept","content":{"e":""}}` {
		t.Errorf("the empty one: %d", status)
	}
}

// Texts that nobody wrote into a form stay as the server has them, also with line breaks.
func TestADefaultKeepsItsLineBreaks(t *testing.T) {
	d, c := newDesk(t, 10), browser(t)
	_, body := get(t, c, d.ask(page.Question{Server: "Files", Form: parsed(t, `{"properties":{"e":{"type":"string","default":"\nb"}}}`)}))
	if !strings.Contains(body, ">\n\nb</textarea>") { // the first one is the page's
		t.Error(body)
	}
}

// Nor does a page change half a character in a text that nobody changed.
func TestADefaultKeepsHalvesOfCharacters(t *testing.T) {
	d, c := newDesk(t, 10), browser(t)
	link := d.ask(page.Question{Server: "Files", Form: parsed(t, `{"properties":{"e":{"type":"string","default":"\ud800\ud800b"}}}`)})
	_, body := get(t, c, link)
	if !strings.Contains(body, "value=\"\uFFFD\uFFFDb\"") {
		t.Error(body)
	}
	post(t, c, link, hidden.FindStringSubmatch(body)[1], "f0="+url.QueryEscape("\uFFFD\uFFFDb"), "accept")
	if got := d.answered(); got != `{"action":"accept","content":{"e":"\ud800\ud800b"}}` {
		t.Error(got)
	}
}

// What is no text in UTF-8 is not handed on: not even halves of characters, which JSON could spell.
func TestWhatIsSubmittedIsUTF8(t *testing.T) {
	d, c := newDesk(t, 10), browser(t)
	link := d.ask(page.Question{Server: "Files"})
	status, _ := post(t, c, link, guardOf(t, c, link), "f0=a%ED%A0%80b&f1=%FF", "accept")
	if got := d.answered(); status != http.StatusOK || got != "{\"action\":\"accept\",\"content\":{\"name\":\"a\uFFFDb\",\"action\":\"\uFFFD\",\"guard\":false}}" {
		t.Errorf("%d %q", status, got)
	}
}

// What fields are called is the server's, and may be what no page can say: their inputs go by numbers.
func TestFieldsMayBeCalledAnything(t *testing.T) {
	for _, name := range []string{"", `a\nb`, `a\r`, `\u0000`, `\ud800x`, "guard", "action", "f1", "_charset_", "isindex", "__proto__", "a[0]", "é"} {
		for kind, field := range map[string]string{
			`"it"`:  `{"type":"string"}`,
			`"a"`:   `{"type":"string","enum":["b","a"]}`,
			`["a"]`: `{"type":"array","items":{"type":"string","enum":["b","a"]}}`,
			`true`:  `{"type":"boolean"}`,
		} {
			d, c := newDesk(t, 10), browser(t)
			link := d.ask(page.Question{Server: "Files", Form: parsed(t, `{"properties":{"x":{"type":"boolean"},"`+name+`":`+field+`}}`)})
			_, body := get(t, c, link)
			if !utf8.ValidString(body) {
				t.Errorf("%q: the page is not UTF-8", name)
			}
			given := map[string]string{`"it"`: "it", `true`: "true"}[kind]
			if given == "" {
				given = "1"
			}
			status, _ := post(t, c, link, hidden.FindStringSubmatch(body)[1], inputs.FindAllStringSubmatch(body, -1)[1][1]+"="+given, "accept")
			if got := d.answered(); status != http.StatusOK || got != `{"action":"accept","content":{"x":false,"`+name+`":`+kind+`}}` {
				t.Errorf("%q, %s: %d %q", name, field, status, got)
			}
		}
	}
}

var inputs = regexp.MustCompile(`<(?:input|select|textarea)[^>]* id="[^"]*" name="([^"]*)"`)

// A server may write half a character into any text that a page shows.
func TestPagesAreUTF8(t *testing.T) {
	half := "\xed\xa0\x80"
	d, c := newDesk(t, 10), browser(t)
	for _, q := range []page.Question{
		{Server: half, Tool: half, Message: half, Form: parsed(t, `{"properties":{"\ud800":{"type":"string","default":"\ud800"},"b":{"type":"boolean","title":"\ud800","description":"\ud800"},"c":{"type":"string","enum":["\ud800","b"]}}}`)},
		{Server: "Files", Preview: half},
	} {
		if status, body := get(t, c, d.ask(q)); status != http.StatusOK || !utf8.ValidString(body) || !strings.Contains(body, "\uFFFD") {
			t.Errorf("%d %q", status, body)
		}
	}
}
