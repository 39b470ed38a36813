package config

import (
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
