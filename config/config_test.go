package config

import (
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// writeFile puts text into a file named bridge.yaml and returns its path.
func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bridge.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// readable is Load without the validation: it accepts a configuration that is
// incomplete.
func readable(src Sources) (Config, error) {
	l := read(src)
	return l.cfg, errorOf(l.problems)
}

func TestDefaultsLackOnlyTheUpstream(t *testing.T) {
	cfg := Default()
	if got := cfg.problems(); len(got) != 1 || got[0].Key != "upstream" {
		t.Errorf("the defaults have problems %v, want only the missing upstream", got)
	}
}

func TestRenderedDefaultsLoadBackToTheDefaults(t *testing.T) {
	cfg, err := readable(Sources{File: writeFile(t, RenderDefaults())})
	if err != nil {
		t.Fatal(err)
	}
	// The file spells empty lists and maps out; they mean the same as absent ones.
	for _, o := range rootSchema.options {
		got, want := o.in(reflect.ValueOf(cfg)), o.in(reflect.ValueOf(Default()))
		if o.List && got.Len() == 0 && want.Len() == 0 {
			continue
		}
		if !reflect.DeepEqual(got.Interface(), want.Interface()) {
			t.Errorf("%s = %v, want %v", o.Key, got, want)
		}
	}
}

func TestEverySettingIsDocumentedAndCanBeSetInEverySource(t *testing.T) {
	if len(rootSchema.options) < 30 {
		t.Fatalf("only %d settings were found", len(rootSchema.options))
	}
	variables := map[string]string{}
	for _, o := range rootSchema.options {
		if o.Doc == "" {
			t.Errorf("%s has no documentation", o.Key)
		}
		if other, taken := variables[o.Env()]; taken {
			t.Errorf("%s and %s share the variable %s", o.Key, other, o.Env())
		}
		if kubernetes.MatchString(o.Env()) {
			t.Errorf("%s is ignored as a variable of Kubernetes", o.Env())
		}
		variables[o.Env()] = o.Key
	}
	for section, doc := range rootSchema.sections {
		if doc == "" {
			t.Errorf("section %s has no documentation", section)
		}
	}
}

func TestLaterSourcesWin(t *testing.T) {
	file := writeFile(t, "upstream: http://file.example\nprofile: minimal\nlimits: {rounds: 2, flows: 3}\ntimeouts:\n  flow: 1h\n")
	cfg, err := Load(Sources{
		File:    file,
		Environ: []string{"HOME=/root", "BRIDGE_LIMITS_FLOWS=5", "BRIDGE_UPSTREAM=http://env.example", "BRIDGE_CONFIG=ignored"},
		Flags:   []Setting{{"upstream", []string{"http://flag.example"}}, {"limits.message-size", []string{"2 mib"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Upstream, want.Profile = "http://flag.example", "minimal"
	want.Limits.Rounds, want.Limits.Flows, want.Limits.MessageSize = 2, 5, 2<<20
	want.Timeouts.Flow = time.Hour
	if !reflect.DeepEqual(cfg, want) {
		t.Errorf("got  %+v\nwant %+v", cfg, want)
	}
}

func TestListsAndHeadersInEverySource(t *testing.T) {
	command := []string{"serve-it", "--flag"}
	headers := map[string]string{"Authorization": "Bearer a:b", "X-Team": "7"}
	origins := []string{"https://a.example", "https://b.example"}
	tests := map[string]Sources{
		"file": {File: writeFile(t, "command: [serve-it, --flag]\nheaders:\n  Authorization: Bearer a:b\n  X-Team: 7\n"+
			"allowed-origins:\n  - https://a.example\n  - https://b.example\n")},
		"environment": {Environ: []string{"BRIDGE_COMMAND=serve-it --flag", "BRIDGE_HEADERS=Authorization: Bearer a:b\nX-Team: 7\n",
			"BRIDGE_ALLOWED_ORIGINS=https://a.example, https://b.example"}},
		"flags": {Flags: []Setting{{"command", command}, {"headers", []string{"Authorization: Bearer a:b", "X-Team: 7"}}, {"allowed-origins", origins}}},
	}
	for name, src := range tests {
		t.Run(name, func(t *testing.T) {
			cfg, err := readable(src)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(cfg.Command, command) || !reflect.DeepEqual(cfg.Headers, headers) || !reflect.DeepEqual(cfg.AllowedOrigins, origins) {
				t.Errorf("got %q, %q, %q", cfg.Command, cfg.Headers, cfg.AllowedOrigins)
			}
		})
	}
}

func TestOnIsAWord(t *testing.T) { // in YAML 1.1 it is true
	cfg, err := Load(Sources{File: writeFile(t, "upstream: http://a.example\ndraft: on\n")})
	if err != nil || cfg.Draft != "on" {
		t.Errorf("draft is %q: %v", cfg.Draft, err)
	}
}

func TestHeapFloorCanBeTurnedOffInEverySource(t *testing.T) {
	for _, sources := range []Sources{
		{File: writeFile(t, "upstream: http://a\nheap-floor: off\n")},
		{File: writeFile(t, "upstream: http://a\nheap-floor: 0\n")},
		{Environ: []string{"BRIDGE_UPSTREAM=http://a", "BRIDGE_HEAP_FLOOR=off"}},
		{Environ: []string{"BRIDGE_UPSTREAM=http://a"}, Flags: []Setting{{"heap-floor", []string{"0"}}}},
	} {
		if cfg, err := Load(sources); err != nil || cfg.HeapFloor != 0 {
			t.Errorf("%+v: %v, %v", sources, cfg.HeapFloor, err)
		}
	}
}

func TestUpstreamsTakeOverThePolicyButNoCredentials(t *testing.T) {
	cfg, err := Load(Sources{
		File: writeFile(t, `
upstreams:
  - path: /a
    upstream: https://a.example/mcp
    headers: {Authorization: Bearer a}
    limits: {rounds: 3}
  - path: /b
    command: [b-server]
profile: minimal
limits: {flows: 9}
`),
		Environ: []string{"BRIDGE_MODERN=refuse"},
	})
	if err != nil {
		t.Fatal(err)
	}
	a, b := cfg.Mounts()[0], cfg.Mounts()[1]
	for _, m := range cfg.Mounts() {
		if m.Profile != "minimal" || m.Modern != "refuse" || m.Limits.Flows != 9 {
			t.Errorf("%s has profile %s, modern %s, flows %d", m.Path, m.Profile, m.Modern, m.Limits.Flows)
		}
	}
	if a.Limits.Rounds != 3 || b.Limits.Rounds != 20 {
		t.Errorf("rounds are %d and %d, want 3 and 20", a.Limits.Rounds, b.Limits.Rounds)
	}
	if len(b.Headers) != 0 {
		t.Errorf("the headers of %s reached %s: %v", a.Path, b.Path, b.Headers)
	}
}

func TestKubernetesServiceVariablesAreIgnored(t *testing.T) {
	_, err := readable(Sources{Environ: []string{
		"BRIDGE_SERVICE_HOST=10.0.0.1", "BRIDGE_SERVICE_PORT=80", "BRIDGE_SERVICE_PORT_HTTP=80", "BRIDGE_PORT=tcp://10.0.0.1:80",
		"BRIDGE_PORT_80_TCP=tcp://10.0.0.1:80", "BRIDGE_PORT_80_TCP_ADDR=10.0.0.1", "BRIDGE_EU_SERVICE_HOST=10.0.0.2",
	}})
	if err != nil {
		t.Error(err)
	}
}

func TestUnits(t *testing.T) {
	sizes := map[string]Size{"0B": 0, "512B": 512, "64KiB": 64 << 10, "4 MiB": 4 << 20, "1gib": 1 << 30, "3MB": 3e6, "1KB": 1000}
	for text, want := range sizes {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "B", "4", "4.5MiB", "-1KiB", "9999999999GiB", "4 MiBs"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("ParseSize(%q) = %d, want an error", text, got)
		}
	}
	for text, want := range map[string]SizeOrOff{"off": 0, "0": 0, "0B": 0, "32MiB": 32 << 20} {
		if got, err := parseSizeOrOff(text); err != nil || got != want {
			t.Errorf("parseSizeOrOff(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for d, want := range map[time.Duration]string{0: "0s", 2 * time.Minute: "2m", 24 * time.Hour: "24h", 90 * time.Second: "1m30s", time.Hour + time.Second: "1h0m1s"} {
		if got := formatDuration(d); got != want {
			t.Errorf("formatDuration(%d) = %s, want %s", d, got, want)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("upstreams:\n - path: /a\n   headers: {A: [b]}\n")
	f.Add("a: &x 1\nb: *x\n? [q]\n: 3\n<<: {listen: 4}\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4<<10 || strings.ContainsRune(text, 0) {
			t.Skip() // the library's own time grows with size; that is not ours to test
		}
		l := newLoader()
		l.mounts("f", l.yaml("f", []byte(text)))
		if err := errorOf(append(l.problems, l.cfg.problems()...)); err != nil && err.Error() == "" {
			t.Error("an error without a text")
		}
	})
}

func TestTrustedProxiesAreAddressesNetworksAndSockets(t *testing.T) {
	cfg := Config{TrustedProxies: []string{"10.1.2.3/8", "192.0.2.7", "::ffff:192.0.2.8", "2001:db8::/32", "unix"}}
	networks, unix := cfg.ProxyNetworks()
	want := []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.7/32"), netip.MustParsePrefix("192.0.2.8/32"),
		netip.MustParsePrefix("2001:db8::/32"),
	}
	if !reflect.DeepEqual(networks, want) || !unix {
		t.Errorf("got %v, unix %v, want %v, true", networks, unix, want)
	}
}

// Networks that hold clients, too, are told of; the largest private ones, and those of a content network, are not.
func TestProxiesThatAreEverybodyAreToldOf(t *testing.T) {
	for text, told := range map[string]bool{
		"0.0.0.0/0": true, "128.0.0.0/1": true, "::/0": true, "2000::/3": true, "2001::/7": true,
		"10.0.0.0/8": false, "fc00::/7": false, "104.16.0.0/13": false, "2400:cb00::/32": false, "127.0.0.1": false, "::1": false, "unix": false, "nonsense": false,
	} {
		cfg := Config{TrustedProxies: []string{text}}
		if notes := cfg.ProxyNotes(); (len(notes) == 1) != told || told && !strings.Contains(notes[0], "trusted-proxies: "+text+" holds everybody") {
			t.Errorf("%s: %q", text, notes)
		}
	}
}

// A setting may have the name of its section: --questions page beside --questions.url.
func TestSettingWithTheNameOfItsSection(t *testing.T) {
	for name, text := range map[string]string{
		"alone":       "upstream: http://h/mcp\nquestions: page\n",
		"beside more": "upstream: http://h/mcp\nquestions:\n  policy: page\n  wait: 5s\n",
	} {
		cfg, err := Load(Sources{File: writeFile(t, text)})
		if err != nil || cfg.Questions.Policy != "page" {
			t.Errorf("%s: %q, %v", name, cfg.Questions.Policy, err)
		}
	}
	cfg, err := Load(Sources{Environ: []string{"BRIDGE_QUESTIONS=page"}, Flags: []Setting{
		{Key: "upstream", Values: []string{"http://h/mcp"}}, {Key: "questions.wait", Values: []string{"1s"}},
	}})
	if err != nil || cfg.Questions.Policy != "page" || cfg.Questions.Wait != time.Second {
		t.Errorf("%+v, %v", cfg.Questions, err)
	}
}

func TestRootsByHeader(t *testing.T) {
	dir := t.TempDir()
	_, err := Load(Sources{File: writeFile(t, "upstream: http://h/mcp\nroots: {by: {ada: file://"+dir+"}}\n")})
	if err == nil || !strings.Contains(err.Error(), "roots.header") {
		t.Error(err)
	}
	cfg, err := Load(Sources{File: writeFile(t, "upstream: http://h/mcp\nroots: {header: X-User, by: {ada: file://"+dir+" file:///}}\n")})
	if err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]int{"ada": 2, "Ada": 0, "": 0} {
		if got := cfg.Roots.For(http.Header{"X-User": {user}}); len(got) != want {
			t.Errorf("%q has the roots %v", user, got)
		}
	}
}
