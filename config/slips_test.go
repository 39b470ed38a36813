package config

import (
	"reflect"
	"strings"
	"testing"
)

// slip is a file, or an environment, as somebody writes it by mistake, and the whole message, where @ stands for the file.
type slip struct {
	yaml string
	env  []string
	want string // empty: it is taken
}

func told(t *testing.T, slips map[string]slip) {
	for name, s := range slips {
		t.Run(name, func(t *testing.T) {
			file, got := writeFile(t, s.yaml), ""
			if _, err := Load(Sources{File: file, Environ: s.env}); err != nil {
				got = strings.ReplaceAll(err.Error(), file, "@")
			}
			if got != s.want {
				t.Errorf("got\n%s\nwant\n%s", got, s.want)
			}
			if strings.Contains(got, "hush") {
				t.Error("the message tells a secret")
			}
		})
	}
}

// What all names begin with makes none nearer to another.
func TestOnlyWhatIsNearIsSuggested(t *testing.T) {
	const url = "upstream: https://a.example/mcp\n"
	told(t, map[string]slip{
		"a variable":             {url, []string{"BRIDGE_TOKEN=hush"}, "BRIDGE_TOKEN: is no setting of the bridge"},
		"a longer one":           {url, []string{"BRIDGE_API_KEY=hush"}, "BRIDGE_API_KEY: is no setting of the bridge"},
		"one of a section":       {url, []string{"BRIDGE_TIMEOUTS_FLW=1s"}, `BRIDGE_TIMEOUTS_FLW: is no setting of the bridge; did you mean "BRIDGE_TIMEOUTS_FLOW"?`},
		"one of a wrong section": {url, []string{"BRIDGE_TIMEOUT_FLOW=1s"}, `BRIDGE_TIMEOUT_FLOW: is no setting of the bridge; did you mean "BRIDGE_TIMEOUTS_FLOW"?`},
	})
	for name, want := range map[string]string{
		"--timeouts.flw": `; did you mean "--timeouts.flow"?`, "--timeout.flow": `; did you mean "--timeouts.flow"?`, "--timeouts.xyz": "",
	} {
		if got := Suggest(name, []string{"--timeouts.flow", "--timeouts.ping"}); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// The line that is indented wrongly is named, and how.
func TestWrongIndentationIsNamedWhereItIs(t *testing.T) {
	const url, tab, spaces = "upstream: https://a.example/mcp\n", "is no YAML: the line begins with a tab; YAML takes only spaces for indentation", "spaces, which fits none of the lines above it"
	told(t, map[string]slip{
		"a tab":                 {yaml: url + "timeouts:\n  round: 3s\n\tflow: 1m\n", want: "@:4: " + tab},
		"a tab at the start":    {yaml: "\t" + url, want: "@:1: " + tab},
		"a tab in a section":    {yaml: url + "timeouts:\n\tflow: 1m\n", want: "@:3: " + tab},
		"a tab for more":        {yaml: url + "timeouts:\n  round: 3s\n  \tflow: 1m\n", want: "@:4: " + tab},
		"a tab within a line":   {yaml: url + "path:\t/a\n"},
		"deeper than its value": {yaml: url + "timeouts:\n  round: 3s\n\n  # so\n   flow: 1m\n", want: "@:6: is no YAML: the line begins with 3 " + spaces},
		"less deep":             {yaml: url + "timeouts:\n    round: 3s\n  flow: 1m\n", want: "@:4: is no YAML: the line begins with 2 " + spaces},
		"in an entry":           {yaml: "upstreams:\n- path: /a\n   upstream: http://a\n", want: "@:3: is no YAML: the line begins with 3 " + spaces},
		"something else":        {yaml: url + "path: 'a\nlisten: ':1'\n", want: "@:3: is no YAML: value is not allowed in this context. map key-value is pre-defined"},
	})
}

// Editors and shells of Windows write other texts.
func TestFilesOfWindowsAreReadOrExplained(t *testing.T) {
	told(t, map[string]slip{
		"a byte order mark":    {yaml: "\xef\xbb\xbfupstream: https://a.example/mcp\r\npath: /a\r\n"},
		"UTF-16":               {yaml: "\xff\xfeu\x00p\x00", want: "@: is in UTF-16; save it as UTF-8"},
		"Latin-1":              {yaml: "upstream: https://a.example/mcp\npath: /\xe4\n", want: "@:2: path: has a character that is no UTF-8; save the file as UTF-8"},
		"Latin-1 in a remark":  {yaml: "upstream: https://a.example/mcp # f\xfcr\n"},
		"lines of an env file": {yaml: "upstream: https://a.example/mcp\n", env: []string{"BRIDGE_PROFILE=strict\r"}},
	})
}

// A list or mapping that is none is shown as it should be, and its value is quoted nowhere. What it leaves unset is not
// missing, and neither is what a misspelt key was to set.
func TestWhatIsNoListIsShownAsOne(t *testing.T) {
	const url = "upstream: https://a.example/mcp\n"
	told(t, map[string]slip{
		"a command":             {yaml: "command: my-server --token hush\n", want: "@:1: command: must be a list, like [my-server, --verbose]"},
		"a command of an entry": {yaml: "upstreams:\n- path: /a\n  command: hush\n", want: "@:3: upstreams[0].command: must be a list, like [my-server, --verbose]"},
		"headers":               {yaml: url + "headers: hush\n", want: `@:2: headers: must be a mapping of names to values, like {Authorization: "Bearer …"}`},
		"tiers":                 {yaml: url + "rates: {tier: 'claim:plan', tiers: gold}\n", want: "@:2: rates.tiers: must be a mapping of names to values, like {gold: 4}"},
		"roots":                 {yaml: url + "roots: file:///tmp\n", want: "@:2: roots: must be a list, like [file:///home/me/project]"},
		"a misspelt upstream":   {yaml: "upstrem: http://a\n", want: `@:1: unknown key "upstrem"; did you mean "upstream"?`},
		"a misspelt command":    {yaml: "upstreams:\n- path: /a\n  comand: [a]\n", want: `@:3: unknown key "upstreams[0].comand"; did you mean "command"?`},
	})
}

// The examples are right themselves.
func TestListsAndMappingsHaveExamples(t *testing.T) {
	for _, o := range Options() {
		if !o.List {
			continue
		}
		l := newLoader()
		l.yaml("f", []byte(strings.ReplaceAll(o.Path, ".", ": {")+": "+o.like()+strings.Repeat("}", strings.Count(o.Path, "."))))
		if o.like() == "" || len(l.problems) > 0 || o.in(reflect.ValueOf(l.cfg)).Len() == 0 {
			t.Errorf("%s: %q %v", o.Key, o.like(), l.problems)
		}
	}
}
