package archtest

import (
	"path"
	"slices"
	"strings"
	"testing"
)

const (
	module = "github.com/mcpbridge/bridge"
	root   = "../.."
)

// mayImport says which packages of the module each package of the program may
// import, as the table in docs/architecture.md does.
var mayImport = map[string][]string{
	"rawjson":    {},
	"sse":        {},
	"jsonrpc":    {"rawjson"},
	"mcp":        {},
	"negotiate":  {"internal/ttlcache", "mcp", "jsonrpc", "rawjson"},
	"translate":  {"mcp", "jsonrpc", "rawjson"},
	"mrtr":       {"internal/jsonout", "mcp", "jsonrpc", "rawjson"},
	"observe":    {"mcp"},
	"sessions":   {"internal/budget", "observe", "mcp"},
	"downstream": {"internal/budget", "observe", "sessions", "mcp", "jsonrpc", "rawjson", "internal/inorder"},
	"legacy":     {"downstream", "observe", "sessions", "sessions/store", "negotiate", "sse", "mcp", "jsonrpc", "rawjson", "internal/transport", "internal/logfield", "internal/agenda", "internal/budget", "internal/gate", "internal/rates", "internal/roster", "internal/turns", "legacy/channel", "legacy/exchange", "legacy/message", "legacy/quiet", "legacy/session", "legacy/stream", "legacy/web", "internal/fault"},
	"upstream":   {"observe", "negotiate", "mcp", "jsonrpc", "rawjson", "internal/buffers", "internal/clip", "internal/budget", "internal/inorder"},
	"bridge":     {"ask", "ask/model", "observe", "bridge/again", "bridge/call", "bridge/catalog", "bridge/ends", "bridge/subscriptions", "bridge/tasks", "downstream", "mrtr", "upstream", "negotiate", "translate", "mcp", "jsonrpc", "rawjson", "internal/budget", "internal/logfield", "internal/roster", "internal/fault"},
	"authorize":  {"internal/bearer", "internal/browser", "internal/http1", "internal/ttlcache", "internal/wellknown", "authorize/sealed", "internal/clip", "internal/smallfile"},
	"config":     {"internal/hop", "internal/http1", "internal/smallfile"},
	"ask":        {"ask/form", "ask/model", "ask/page", "mcp", "rawjson", "internal/budget"},
	"ask/form":   {"rawjson"},
	"ask/model":  {"internal/budget", "internal/http1", "rawjson"},
	"ask/page":   {"ask/form", "internal/budget", "rawjson"},
	"cmd/bridge": {"*"},
	".":          {"bridge", "downstream", "sessions/store", "legacy", "legacy/quiet", "upstream/stdio", "negotiate", "internal/budget", "internal/logfield", "internal/mount", "upstream/streamable"},

	"bridge/again":         {"downstream", "internal/budget", "internal/fault", "jsonrpc", "mcp", "mrtr", "rawjson", "translate"},
	"bridge/call":          {"ask", "ask/model", "bridge/again", "bridge/catalog", "bridge/ends", "bridge/flight", "bridge/tasks", "downstream", "internal/budget", "internal/fault", "internal/gate", "internal/hop", "internal/logfield", "jsonrpc", "mcp", "mrtr", "observe", "rawjson", "translate", "upstream", "internal/inorder"},
	"bridge/ends":          {"downstream", "internal/budget", "internal/fault", "internal/logfield", "jsonrpc", "mcp", "mrtr", "observe", "rawjson", "translate", "upstream"},
	"bridge/flight":        {"internal/budget", "mrtr", "observe"},
	"bridge/tasks":         {"internal/budget", "downstream", "mcp", "jsonrpc", "rawjson", "internal/fault"},
	"bridge/subscriptions": {"internal/budget", "internal/gate", "bridge/catalog", "upstream", "translate", "mcp", "jsonrpc", "rawjson", "internal/roster", "internal/inorder"},
	"bridge/catalog":       {"downstream", "observe", "internal/hop", "negotiate", "translate", "mcp", "rawjson", "upstream/mirror", "internal/ttlcache", "internal/budget"},

	"observe/tap":      {"observe", "observe/record", "observe/report", "observe/traces", "downstream", "upstream", "mcp", "jsonrpc", "rawjson", "internal/logfield"},
	"observe/metrics":  {"observe", "translate", "mcp", "rawjson"},
	"observe/admin":    {"internal/smallfile"},
	"observe/traces":   {"internal/http1", "internal/smallfile", "observe", "mcp", "rawjson"},
	"observe/report":   {"internal/smallfile", "observe"},
	"observe/record":   {"observe", "mcp", "rawjson"},
	"observe/replay":   {"observe/record", "upstream", "mcp", "jsonrpc", "rawjson"},
	"observe/terminal": {"internal/clip", "observe", "observe/record", "observe/view"},
	"observe/diff":     {"mcp", "rawjson"},
	"observe/view":     {"observe", "observe/diff", "observe/record", "translate", "mcp", "rawjson"},

	"legacy/exchange": {"downstream", "internal/agenda", "internal/budget", "internal/gate", "internal/jsonout", "jsonrpc", "legacy/message", "legacy/quiet", "legacy/session", "legacy/stream", "legacy/web", "sessions", "sessions/store"},
	"legacy/session":  {"downstream", "internal/bearer", "internal/budget", "internal/gate", "internal/hop", "internal/logfield", "internal/rates", "internal/turns", "jsonrpc", "legacy/message", "legacy/stray", "legacy/stream", "legacy/web", "mcp", "observe", "rawjson", "sessions", "sessions/store"},
	"legacy/message":  {"downstream", "observe", "sessions", "mcp", "jsonrpc", "rawjson", "internal/logfield", "internal/fault"},
	"legacy/channel":  {"legacy/message", "downstream", "observe", "negotiate", "mcp", "jsonrpc", "rawjson", "internal/agenda", "internal/budget", "internal/gate", "internal/transport", "internal/logfield", "internal/fault", "internal/inorder"},
	"legacy/stray":    {"downstream", "sessions/store"},
	"legacy/stream":   {"internal/budget", "downstream", "legacy/message", "legacy/quiet", "legacy/web", "observe", "sessions", "sse", "mcp", "jsonrpc", "internal/agenda", "internal/gate", "internal/logfield"},
	"legacy/quiet":    {"legacy/h1", "legacy/message", "legacy/web", "sessions", "internal/agenda", "internal/gate", "internal/http1", "internal/park"},
	"legacy/web":      {"legacy/message", "downstream", "observe", "sse", "mcp", "jsonrpc", "internal/clip", "internal/fault", "internal/gate", "internal/logfield"},
	"legacy/h1":       {"internal/http1", "internal/meter", "internal/roster", "internal/socket"},
	"upstream/h1":     {"internal/http1", "internal/socket"},
	"upstream/stdio":  {"upstream", "observe", "negotiate", "mcp", "jsonrpc", "rawjson", "internal/clip", "internal/fault", "internal/logfield", "internal/transport", "internal/budget", "internal/inorder"},
	"upstream/mirror": {"mcp", "jsonrpc", "rawjson", "internal/fault", "internal/http1"},

	"upstream/streamable": {"internal/budget", "internal/buffers", "internal/fault", "internal/hop", "internal/http1", "internal/roundtrip", "jsonrpc", "mcp", "negotiate", "observe", "rawjson", "sse", "upstream", "upstream/h1", "upstream/mirror"},
	"internal/buffers":    {},
	"authorize/sealed":    {"internal/clip", "internal/fileowner"},
	"internal/bearer":     {"rawjson"},
	"internal/clip":       {},
	"internal/fileowner":  {},
	"internal/smallfile":  {"internal/fileowner"},
	"internal/hop":        {"internal/bearer", "internal/http1"},
	"internal/http1":      {},
	"internal/roundtrip":  {"internal/http1"},
	"internal/edge":       {"internal/budget", "internal/connlimit", "internal/hop", "internal/meter", "internal/smallfile", "internal/socket", "legacy/h1", "legacy/quiet", "legacy/web", "internal/logfield"},
	"internal/fleet":      {"upstream", "mcp", "jsonrpc", "internal/clip", "internal/mount", "internal/logfield", "legacy/web"},
	"internal/check":      {"internal/clip", "internal/http1", "downstream", "observe", "internal/relay", "upstream", "upstream/stdio", "negotiate", "translate", "mcp", "jsonrpc", "rawjson", "internal/dialect", "internal/wellknown", "upstream/streamable"},

	"sessions/store":           {"internal/fileowner", "internal/smallfile"},
	"sessions/sessionstest":    {"sessions/store"},
	"sessions/boltstore":       {"sessions/store", "sessions/boltstore/pages"},
	"sessions/boltstore/pages": {"sessions/store"},
	"sessions/redisstore":      {"sessions/store", "internal/smallfile", "internal/socket", "internal/turns"},

	"internal/browser":     {},
	"internal/replica":     {"downstream", "internal/connlimit", "internal/http1", "sessions/store"},
	"internal/transport":   {"internal/budget"},
	"internal/park":        {"internal/socket"},
	"internal/socket":      {},
	"internal/mount":       {"authorize", "downstream", "observe", "observe/tap", "legacy", "legacy/web", "bridge", "bridge/catalog", "upstream", "upstream/stdio", "negotiate", "translate", "mcp", "jsonrpc", "rawjson", "internal/bearer", "internal/dialect", "internal/passthrough", "internal/relay", "internal/relayed", "internal/resource", "internal/logfield", "internal/gate", "internal/signin", "internal/turns", "internal/vouch", "internal/fault", "upstream/streamable", "internal/budget", "internal/socket"},
	"internal/signin":      {"authorize", "upstream", "mcp", "jsonrpc", "rawjson", "internal/fault"},
	"internal/dialect":     {"upstream", "mrtr", "mcp", "jsonrpc", "rawjson", "internal/hop", "internal/logfield"},
	"internal/passthrough": {"downstream", "internal/budget", "observe", "internal/hop", "internal/http1", "internal/logfield", "internal/roundtrip", "upstream", "upstream/mirror", "sse", "mcp", "jsonrpc", "rawjson", "internal/gate", "internal/turns", "internal/fault"},
	"internal/relay":       {"downstream", "internal/budget", "internal/hop", "internal/http1", "internal/logfield", "internal/roundtrip", "observe", "upstream/stdio", "sse", "mcp", "jsonrpc", "rawjson", "internal/gate", "internal/turns", "internal/fault", "internal/clip"},
	"internal/relayed":     {"internal/budget", "internal/logfield", "sessions", "sessions/store"},
	"internal/resource":    {"internal/bearer", "internal/budget", "internal/hop", "internal/ttlcache", "internal/uses", "internal/wellknown", "rawjson"},
	"internal/wellknown":   {},
	"internal/fault":       {"jsonrpc", "rawjson", "internal/clip"},
	"internal/agenda":      {},
	"internal/jsonout":     {"rawjson"},
	"internal/budget":      {"internal/turns"},
	"internal/connlimit":   {},
	"internal/meter":       {"internal/budget"},
	"internal/rates":       {},
	"internal/turns":       {"internal/inorder"},
	"internal/inorder":     {},
	"internal/uses":        {},
	"internal/vouch":       {"internal/bearer", "internal/uses", "mcp", "sessions/store"},
	"internal/gate":        {},
	"internal/roster":      {},
	"internal/ttlcache":    {},
	"internal/logfield":    {},
	"internal/usersocket":  {},
	"internal/gctune":      {},
	"internal/demo":        {"internal/modernonly", "internal/wirelog", "rawjson"},
	"internal/modernonly":  {},
	"internal/wirelog":     {},
}

// beside lists the trees that are no part of the program: only each other and
// tests import them.
var beside = []string{"internal/archtest", "internal/carriertest", "internal/compat", "internal/peers", "internal/redistest", "internal/testbridge", "internal/testcert", "internal/testmode", "internal/testport", "internal/testprocess", "internal/wiretest", "bench", "deploy", "test"}

// owners says who alone may import a package; it covers every package, tests
// excepted.
var owners = map[string][]string{
	module + "/config":                {"cmd/bridge"},
	module + "/cmd":                   {},
	module + "/bench":                 {"bench"},
	module + "/internal/peers":        {},
	module + "/internal/demo":         {"cmd/bridge"},
	module + "/internal/testmode":     {"internal/testbridge"},
	"github.com/gorilla/websocket":    {"internal/transport"},
	"github.com/hashicorp/golang-lru": {"mrtr", "sessions", "ask", "internal/rates"},
	"go.etcd.io/bbolt":                {"sessions/boltstore"},
	"github.com/redis/rueidis":        {"sessions/redisstore"},
	"github.com/spf13":                {"cmd/bridge"},
	"github.com/KimMachineGun":        {"internal/budget"},
	"github.com/goccy/go-yaml":        {"config"},
	"github.com/prometheus":           {"observe/metrics"},
	"go.opentelemetry.io":             {"observe/traces", "test"},
	"github.com/rs/zerolog/log":       {}, // the logger is injected
	"log/slog":                        {},

	"github.com/modelcontextprotocol/go-sdk/mcp":     {"internal/demo", "internal/peers", "bench", "test"},
	"github.com/modelcontextprotocol/go-sdk/jsonrpc": {"internal/demo", "internal/peers", "bench", "test"},
	"github.com/modelcontextprotocol/go-sdk/auth":    {},
	"github.com/modelcontextprotocol/go-sdk/oauthex": {"authorize"},
	"golang.org/x/oauth2":                            {"authorize"},
	"github.com/go-jose/go-jose":                     {"internal/resource", "internal/wellknown"},
	"github.com/golang-jwt":                          {"authorize"},
	"github.com/gofrs/flock":                         {"authorize"},
	"github.com/zalando/go-keyring":                  {"authorize"},
}

func TestImportsFollowTheArchitecture(t *testing.T) {
	used := map[string]bool{}
	for file, imports := range sources(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue // tests bring their own peers
		}
		importer := path.Dir(file)
		for _, imported := range imports {
			if own, ok := strings.CutPrefix(imported, module+"/"); ok {
				checkOwn(t, file, importer, own)
				used[importer+" "+own] = true
			}
			for owned, allowed := range owners {
				if within(imported, owned) && !within(importer, strings.TrimPrefix(owned, module+"/")) && !withinAny(importer, allowed) {
					t.Errorf("%s imports %s, which only %v may", file, imported, allowed)
				}
			}
		}
	}
	for importer, allowed := range mayImport {
		for _, imported := range allowed {
			if imported != "*" && !used[importer+" "+imported] {
				t.Errorf("package %s no longer imports %s; take it out of docs/architecture.md and mayImport", importer, imported)
			}
		}
	}
}

func checkOwn(t *testing.T, file, importer, imported string) {
	if withinAny(importer, beside) {
		return
	}
	if withinAny(imported, beside) {
		t.Errorf("%s imports %s, which is no part of the program", file, imported)
	}
	if allowed := mayImport[importer]; !slices.Contains(allowed, "*") && !slices.Contains(allowed, imported) {
		t.Errorf("%s imports %s; package %s may import only %v", file, imported, importer, allowed)
	}
}

// TestEveryPackageHasARule keeps the table complete, and free of packages that are
// gone.
func TestEveryPackageHasARule(t *testing.T) {
	exists := map[string]bool{}
	for file := range sources(t) {
		exists[path.Dir(file)] = true
	}
	for name := range exists {
		if _, listed := mayImport[name]; !listed && !withinAny(name, beside) {
			t.Errorf("package %s has no rule; add it to docs/architecture.md and to mayImport", name)
		}
	}
	for name := range mayImport {
		if !exists[name] {
			t.Errorf("mayImport has a rule for %s, which does not exist", name)
		}
	}
}

// TestTheTableSaysWhatIsChecked: docs/architecture.md names every package that has
// a rule, and what it may import.
func TestTheTableSaysWhatIsChecked(t *testing.T) {
	rows := map[string]string{}
	for line := range strings.Lines(read(t, "docs/architecture.md")) {
		cells := strings.Split(line, "|")
		if len(cells) == 5 {
			for name := range strings.SplitSeq(cells[1], ",") {
				rows[strings.Trim(name, " `")] = cells[3]
			}
		}
	}
	for name, allowed := range mayImport {
		row, listed := rows[name]
		if !listed {
			t.Errorf("docs/architecture.md has no row for %s", name)
		}
		for _, imported := range allowed {
			if imported != "*" && !strings.Contains(row, imported) && !strings.Contains(row, "those") {
				t.Errorf("docs/architecture.md does not say that %s may import %s", name, imported)
			}
		}
	}
}

// TestNobodySleepsOutsideOfABubble: in the bubbles of testing/synctest sleeping
// takes no time; elsewhere it makes tests slow and guesses at what they wait for.
func TestNobodySleepsOutsideOfABubble(t *testing.T) {
	for file, imports := range sources(t) {
		tested := strings.HasSuffix(file, "_test.go")
		if tested && !slices.Contains(imports, "testing/synctest") && strings.Contains(read(t, file), "time."+"Sleep(") {
			t.Errorf("%s sleeps; wait for an event, or use testing/synctest", file)
		}
	}
}
