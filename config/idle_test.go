package config

import "testing"

// Settings that have no effect since another one was forgotten are named, and that one.
func TestSettingsWithoutEffectAreNamed(t *testing.T) {
	const url = "upstream: https://a.example/mcp\n"
	const relay = "has no effect while auth.mode is relay; remove it, or set auth.mode to agent or terminate"
	told(t, map[string]slip{
		"a client":             {yaml: url + "auth: {client-id: a}\n", want: "@:2: auth.client-id: " + relay},
		"a secret":             {yaml: url, env: []string{"BRIDGE_AUTH_CLIENT_SECRET=hush"}, want: "BRIDGE_AUTH_CLIENT_SECRET: auth.client-secret: " + relay},
		"whose tokens":         {yaml: url + "auth: {clients: {issuer: 'https://i'}}\n", want: "@:2: auth.clients.issuer: " + relay},
		"whose, of an agent":   {yaml: url + "auth: {mode: agent, clients: {scopes: [a]}}\n", want: "@:2: auth.clients.scopes: has no effect with auth.mode agent; remove it, or set auth.mode to terminate"},
		"a client of no grant": {yaml: url + "public-url: https://b\nauth: {mode: terminate, client-id: a, clients: {issuer: 'https://i'}}\n", want: "@:3: auth.client-id: has no effect without auth.grant, by which the bridge gets tokens of its own; remove it, or set auth.grant"},
		"a model":              {yaml: url + "sampling: {model: m}\n", want: "@:2: sampling.model: has no effect while sampling.provider is off; remove it, or set sampling.provider to openai or anthropic"},
		"a wait":               {yaml: url + "questions: {wait: 1m}\n", want: "@:2: questions.wait: is about a page, and nothing is asked on one; remove it, or add questions: page"},
		"what opens":           {yaml: url + "questions: {policy: decline, open: 'off'}\n", want: "@:2: questions.open: is about a page, and nothing is asked on one; remove it, or add questions: page"},
		"a header":             {yaml: url + "roots: {header: X-A}\n", want: "@:2: roots.header: has no effect without roots.by, which says whose roots are which"},
		"processes":            {yaml: url + "command-mode: per-session\n", want: "@:2: command-mode: has no effect beside upstream: only a command has processes"},
		"a command's discover": {yaml: "command: [a]\ntimeouts: {discover: 20s}\n", want: "@:2: timeouts.discover: has no effect with a command, which has timeouts.start for its first answer; remove it, or set that"},
		"TLS of a command":     {yaml: "command: [a]\nupstream-tls: {ca: /c}\n", want: "@:2: upstream-tls.ca: has no effect with a command, which is not reached by https; remove it"},
		"durability":           {yaml: url + "store: {durability: relaxed}\n", want: "@:2: store.durability: has an effect on a store in a file only; remove it"},
		"an outage":            {yaml: url + "store: {url: 'file:/s', outage: fail}\n", want: "@:2: store.outage: has an effect on a store in Redis only; remove it"},
		"unloading":            {yaml: url + "store: {unload: 0s}\n", want: "@:2: store.unload: has no effect with memory:, where nothing is kept; remove it, or set store.url"},
		"of an entry":          {yaml: "upstreams:\n- {path: /a, upstream: 'http://a', auth: {client-id: a}}\n", want: "@:2: upstreams[0].auth.client-id: " + relay},

		"what others use":   {yaml: "auth: {client-id: a}\nsampling: {model: m}\nupstreams:\n- {path: /a, upstream: 'http://a', auth: {mode: agent}}\n- {path: /b, command: [b], sampling: {provider: openai}}\n"},
		"what says nothing": {yaml: url + "auth: {scopes: [], parameters: {}}\nsampling: {max-tokens: 4096}\n"},
		"where logins are":  {yaml: url + "auth: {dir: /a, store: file, browser: b}\n"},
		"approval":          {yaml: url + "sampling: {provider: openai, model: m, approve: on}\nquestions: {wait: 1m}\n"},
	})
}

// Commands that obey some settings only pass over those of others.
func TestSettingsOfOtherCommandsMayHaveNoEffect(t *testing.T) {
	if _, err := Load(Sources{File: writeFile(t, "upstream: https://a.example/mcp\nauth: {client-id: a}\n"), Partly: true}); err != nil {
		t.Error(err)
	}
}
