package main

import "testing"

func TestACommandIsNamedByWhatItRuns(t *testing.T) {
	for _, tc := range []struct {
		want    string
		command []string
	}{
		{"my-server", []string{"/opt/my-server", "--token", "hush"}},
		{"node server.js", []string{"node", "--inspect", "/srv/app/server.js", "hush"}},
		{"npx @scope/server", []string{"npx", "-y", "@scope/server", "hush"}},
		{"python3 my_server", []string{"/usr/bin/python3", "-m", "my_server"}},
		{"uv server.py", []string{"uv", "run", "server.py"}},
		{"node", []string{"node", "--env", "KEY=hush", "x.js"}},
		{"node", []string{"node"}},
		{"sh", []string{"sh", "-c", "hush"}},
	} {
		if got := commandName(tc.command); got != tc.want {
			t.Errorf("%q is called %q, want %q", tc.command, got, tc.want)
		}
	}
}
