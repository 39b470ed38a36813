package main

import (
	"slices"
	"strings"
	"testing"
)

func TestACommandGetsACleanEnvironment(t *testing.T) {
	own := []string{"PATH=/bin", "HOME=/h", "LC_ALL=C", "BRIDGE_HEADERS=Authorization: Bearer s", "AWS_KEY=k", "AWS_REGION=r", "API_KEY=a", "EMPTY="}
	for _, tc := range []struct{ listed, want []string }{
		{nil, []string{"PATH=/bin", "HOME=/h", "LC_ALL=C"}},
		{[]string{"API_KEY", "EMPTY"}, []string{"PATH=/bin", "HOME=/h", "LC_ALL=C", "API_KEY=a", "EMPTY="}},
		{[]string{"AWS_*", "MODE=x=y"}, []string{"PATH=/bin", "HOME=/h", "LC_ALL=C", "AWS_KEY=k", "AWS_REGION=r", "MODE=x=y"}},
		{[]string{"*"}, []string{"PATH=/bin", "HOME=/h", "LC_ALL=C", "AWS_KEY=k", "AWS_REGION=r", "API_KEY=a", "EMPTY="}},
		{[]string{"BRIDGE_HEADERS", "BRIDGE_*"}, []string{"PATH=/bin", "HOME=/h", "LC_ALL=C"}},
	} {
		if got := environment(own, tc.listed); !slices.Equal(got, tc.want) {
			t.Errorf("with %q it gets %q, want %q", tc.listed, got, tc.want)
		}
	}
}

// By way of the program: what a command says of its environment.
func TestSecretsOfTheBridgeAreNotTheCommands(t *testing.T) {
	t.Setenv("BRIDGE_HEADERS", "X-Key: hush")
	t.Setenv("OTHER_SECRET", "hush")
	t.Setenv("WANTED", "yes")
	p := start(t, "serve", "--listen", "127.0.0.1:0", "--admin.listen", "127.0.0.1:0", "--command-env", "WANTED", "--", "sh", "-c", "env >&2; cat >/dev/null")
	p.expect("WANTED=yes")
	p.expect("PATH=")
	url, token := adminOf(p)
	if _, body := seen(t, url+"server", token); !strings.Contains(body, "WANTED=yes") { // it is there before it is in the log
		t.Errorf("what the command printed is not on the page:\n%s", body)
	}
	if text := p.errors.String(); strings.Contains(text, "hush") {
		t.Errorf("the command was given a secret:\n%s", text)
	}
}
