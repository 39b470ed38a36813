package mount

import (
	"testing"

	"github.com/mcpbridge/bridge/upstream/stdio"
	"github.com/mcpbridge/bridge/upstream/streamable"
)

// TestServersAreToldApart: replicas of one deploy name a server alike, in the next version, too.
func TestServersAreToldApart(t *testing.T) {
	command := func(words ...string) string {
		o := Options{Command: &Command{Stdio: stdio.Options{Command: words[0], Args: words[1:]}}}
		return o.serverName()
	}
	at := func(url string) string {
		o := Options{Upstream: streamable.Options{URL: url}}
		return o.serverName()
	}
	for what, pair := range map[string][2]string{
		"a package": {command("npx", "-y", "@a/b@1.2.3"), command("npx", "-y", "@a/b@1.3.0-rc.1")}, "an image": {command("docker", "run", "x/y:1.2"), command("docker", "run", "x/y:1.3")},
		"a wheel": {command("uvx", "s==0.1.2"), command("uvx", "s==0.2.0")}, "an address": {at("https://a:b@Example.com:443/mcp?key=1#x"), at("https://example.com/mcp")},
	} {
		if pair[0] != pair[1] || pair[0] == "" {
			t.Errorf("%s: %q is not %q", what, pair[0], pair[1])
		}
	}
	for what, pair := range map[string][2]string{
		"packages": {command("npx", "a"), command("npx", "b")}, "hosts": {command("ssh", "me@10.0.0.1"), command("ssh", "me@10.0.0.2")},
		"ports": {command("proxy", "localhost:3000"), command("proxy", "localhost:3001")}, "words": {command("a b"), command("a", "b")},
		"addresses": {at("http://h/a"), at("http://h/b")}, "schemes": {at("http://h/a"), at("https://h/a")},
	} {
		if pair[0] == pair[1] {
			t.Errorf("%s: both are %q", what, pair[0])
		}
	}
}
