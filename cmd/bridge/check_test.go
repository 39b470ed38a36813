package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/bridge/internal/check"
	"github.com/mcpbridge/bridge/mcp"
)

// runCheck runs `bridge check` and returns what it prints.
func runCheck(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	var text bytes.Buffer
	err = run(t.Context(), append([]string{"check"}, args...), surroundings{in: strings.NewReader(""), out: &text, err: io.Discard})
	return text.String(), err
}

func TestCheckShowsWhichToolsWhichClientsWillNotSee(t *testing.T) {
	server := answering(t, http.StatusNotFound, map[string]string{
		mcp.MethodDiscover: discovered,
		mcp.MethodToolsList: `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[
			{"name":"good","inputSchema":{"type":"object"}},
			{"name":"no\u001b[31mschema","inputSchema":7},
			{"name":"illegal","inputSchema":{"type":"object","properties":{"a":{"type":"array","x-mcp-header":"A"}}}}]}}`,
	})
	out, err := runCheck(t, server.URL+"?token=hush")
	if err != nil {
		t.Error(err)
	}
	for _, part := range []string{
		"usable         yes", "era            modern (2026-07-28)", "server         canned 1", "capabilities   tools",
		"tools          3", "- illegal is left out for every client: x-mcp-header of",
		"2024-11-05     1 of 3 tools; questions: sampling, roots", "- no[31mschema is left out for every client: ",
	} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is not in\n%s", part, out)
		}
	}
	if strings.Contains(out, "hush") || strings.Contains(out, "\x1b") {
		t.Errorf("the report tells a secret or controls the terminal:\n%q", out)
	}
}

// escape is what a server may have a terminal do: colours, a title, the same in one character,
// a text from right to left, and a line that is not the report's.
const escape = `\u001b[31mEVIL\u001b]0;pwn\u0007\u009b31m\u202e\u200f\r\n  usable         no`

// TestNothingOfAServerControlsTheTerminalOfCheck: wherever the server puts it.
func TestNothingOfAServerControlsTheTerminalOfCheck(t *testing.T) {
	error32022 := func(data string) string {
		return `{"jsonrpc":"2.0","id":ID,"error":{"code":-32022,"message":"` + escape + `","data":` + data + `}}`
	}
	for name, answers := range map[string]map[string]string{
		"its versions": {mcp.MethodDiscover: `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","supportedVersions":["2026-07-28","2026-07-28` + escape + `"],` +
			`"capabilities":{"tools":{},"` + escape + `":{}},"serverInfo":{"name":"` + escape + `","version":"1"}}}`,
			mcp.MethodToolsList: `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","tools":[{"name":"` + escape + `","inputSchema":7},` +
				`{"name":"b","inputSchema":{"type":"object","properties":{"q` + escape + `":{"type":"string","x-mcp-header":"bad name` + escape + `"}}}}]}}`},
		"versions of an error":  {mcp.MethodDiscover: error32022(`{"supported":["2025-06-18` + escape + `","2030-01-01` + escape + `"]}`)},
		"others of an error":    {mcp.MethodDiscover: error32022(`{"supported":["2030-01-01","2030-01-01` + escape + `"]}`)},
		"version of initialize": {mcp.MethodInitialize: `{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-06-18` + escape + `","capabilities":{},"serverInfo":{"name":"n","version":"1"}}}`},
		"an error":              {mcp.MethodDiscover: `{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"` + escape + `"}}`},
	} {
		for _, flags := range [][]string{nil, {"--json"}} {
			out, _ := runCheck(t, append(flags, answering(t, http.StatusBadRequest, answers).URL)...)
			if i := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 || out == "" {
				t.Errorf("%s, %v: at %d of\n%q", name, flags, i, out)
			}
			if n := strings.Count(out, "\n  usable "); flags == nil && n != 1 {
				t.Errorf("%s: %d times usable in\n%s", name, n, out)
			}
		}
	}
}

// TestCheckJudgesEachKindOfServer: by exit status, the JSON and the text.
func TestCheckJudgesEachKindOfServer(t *testing.T) {
	http := func(kind string) func(*testing.T) []string {
		return func(t *testing.T) []string { return []string{answering(t, 400, cannedAnswers[kind]).URL} }
	}
	command := func(kind string) func(*testing.T) []string {
		return func(t *testing.T) []string { return append([]string{"--"}, cannedKind(t, kind)...) }
	}
	dead := func(t *testing.T) []string { return []string{deadURL} }
	never := []string{"--legacy-relay", "never"}
	for _, tc := range []struct {
		name    string
		server  func(*testing.T) []string
		flags   []string
		usable  bool
		era     string
		relayed int // of the four legacy revisions
		text    string
	}{
		{"modern over HTTP", http("weather"), nil, true, "modern", 0, "era            modern (2026-07-28)"},
		{"modern command", command("weather"), nil, true, "modern", 0, "era            modern (2026-07-28)"},
		{"dual-era over HTTP", http("dual"), nil, true, "dual-era", 0, "speaks older revisions too"},
		{"dual-era over HTTP, relayed", http("dual"), []string{"--legacy-relay", "always"}, true, "dual-era", 2, "2025-06-18     the server itself"},
		{"dual-era command", command("dual"), nil, true, "dual-era", 0, "1 of 1 tool"},
		{"legacy over HTTP", http("legacy"), nil, true, "legacy", 4, "a legacy server"},
		{"legacy over HTTP, not relayed", http("legacy"), never, false, "legacy", 0, "it offers 2025-06-18"},
		{"legacy command", command("legacy"), nil, true, "legacy", 4, "each to a process of its own"},
		{"legacy command, not relayed", command("legacy"), never, false, "legacy", 0, "it offers 2025-06-18"},
		{"dual-era command, relayed", command("dual"), []string{"--legacy-relay", "always"}, true, "dual-era", 2, "2025-06-18     the server itself"},
		{"dead over HTTP", dead, nil, false, "unknown", 0, "connection refused"},
		{"dead command", command("dead"), nil, false, "unknown", 0, "ended before it answered"},
		{"no MCP over HTTP", http("nothing"), nil, false, "unknown", 0, "wrong URL"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := append(slices.Clone(tc.flags), tc.server(t)...)
			text, err := runCheck(t, args...)
			if (err == nil) != tc.usable || err != nil && !errors.Is(err, check.ErrUnusable) || !strings.Contains(text, tc.text) {
				t.Errorf("check ends with %v and\n%s", err, text)
			}
			out, _ := runCheck(t, append([]string{"--json"}, args...)...)
			var got check.Report
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatal(err)
			}
			relayed := 0
			for _, c := range got.Clients {
				if c.Relayed {
					relayed++
				}
			}
			if got.Usable != tc.usable || got.Era != tc.era || relayed != tc.relayed || (got.Problem == "") != tc.usable {
				t.Errorf("the report is %s", out)
			}
		})
	}
}

func TestI3CheckOfAServerThatSpeaksADraft(t *testing.T) {
	server := answering(t, http.StatusNotFound, map[string]string{
		mcp.MethodDiscover:  strings.Replace(discovered, "2026-07-28", "DRAFT-2026-v1", 1),
		mcp.MethodToolsList: `{"jsonrpc":"2.0","id":ID,"result":{"result_type":"complete","tools":[]}}`,
	})
	if out, err := runCheck(t, server.URL); err != nil || !strings.Contains(out, "modern (DRAFT-2026-v1)") {
		t.Errorf("check says %v and\n%s", err, out)
	}
	if out, err := runCheck(t, "--draft", "off", server.URL); !errors.Is(err, check.ErrUnusable) || !strings.Contains(out, "no common version") {
		t.Errorf("switched off, check says %v and\n%s", err, out)
	}
}

func TestCheckOfAServerThatWantsAuthorization(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer good" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		canned(http.StatusNotFound, map[string]string{mcp.MethodDiscover: discovered}).ServeHTTP(w, r)
	}))
	defer server.Close()
	if out, err := runCheck(t, server.URL); err != nil || !strings.Contains(out, "wanted (HTTP 401)") {
		t.Errorf("without credentials: %v and\n%s", err, out)
	}
	if out, err := runCheck(t, server.URL, "--header", "Authorization: Bearer wrong"); !errors.Is(err, check.ErrUnusable) || strings.Contains(out, "wrong") ||
		!strings.Contains(out, "authorization  refused (HTTP 401)") || !strings.Contains(out, "refused the configured Authorization (HTTP 401): correct it in BRIDGE_HEADERS") {
		t.Errorf("with wrong credentials: %v and\n%s", err, out)
	}
	if out, err := runCheck(t, server.URL, "--header", "Authorization: Bearer good"); err != nil || !strings.Contains(out, "canned 1") {
		t.Errorf("with credentials: %v and\n%s", err, out)
	}
}

func TestCheckTellsForWhichResourceTokensAre(t *testing.T) {
	metadata := `{"resource":"https://mcp.example.com/mcp"}`
	foreign := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a challenge sent check to another server")
	}))
	defer foreign.Close()
	var at string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, metadata)
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="x", resource_metadata="`+at+`/.well-known/oauth-protected-resource"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	for _, url := range []string{server.URL, foreign.URL} {
		at = url
		if out, err := runCheck(t, server.URL); err != nil || !strings.Contains(out, "accepts tokens for https://mcp.example.com/mcp\n") {
			t.Errorf("metadata at %s: %v and\n%s", url, err, out)
		}
	}
	at = server.URL
	for public, want := range map[string]string{
		"": "where --public-url is that", "https://mcp.example.com": "which is --public-url: clients sign in themselves",
		"https://mcp.example.com/other": "right only if the server does not look for whom a token is", "https://bridge.example.com": "which is not --public-url",
	} {
		if out, err := runCheck(t, server.URL, "--public-url", public); err != nil || !strings.Contains(out, want) {
			t.Errorf("--public-url %s: %v and\n%s", public, err, out)
		}
	}
}

func TestCheckNamesAServerOfTheOldTransport(t *testing.T) {
	old := mcpsdk.NewServer(&mcpsdk.Implementation{Name: "old", Version: "3"}, &mcpsdk.ServerOptions{SupportedProtocolVersions: []string{"2025-03-26", "2024-11-05"}})
	old.AddTool(&mcpsdk.Tool{Name: "one", InputSchema: map[string]any{"type": "object"}}, nil)
	speaks := mcpsdk.NewSSEHandler(func(*http.Request) *mcpsdk.Server { return old }, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != "k" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		speaks.ServeHTTP(w, r)
	}))
	defer server.Close()
	out, err := runCheck(t, server.URL+"/sse", "--header", "X-Key: k")
	for _, part := range []string{"usable         yes\n", "speaks only HTTP+SSE", "era            legacy (2025-03-26)\n", "server         old 3,",
		"tools          1\n", "2024-11-05     the server itself", "2025-11-25     the server itself"} {
		if err != nil || !strings.Contains(out, part) {
			t.Errorf("%v; %q is not in\n%s", err, part, out)
		}
	}
	out, err = runCheck(t, server.URL+"/sse", "--header", "X-Key: k", "--legacy-relay", "never")
	if !errors.Is(err, check.ErrUnusable) || !strings.Contains(out, "problem        the upstream speaks only HTTP+SSE") {
		t.Errorf("where nobody may be relayed, check says %v and\n%s", err, out)
	}
}

func TestCheckNamesALegacyServerAndItsTools(t *testing.T) {
	for _, args := range [][]string{{answering(t, 400, cannedAnswers["legacy"]).URL}, append([]string{"--"}, cannedKind(t, "legacy")...)} {
		out, err := runCheck(t, args...)
		for _, part := range []string{"server         old 1,", "capabilities   tools\n", "tools          2\n"} {
			if err != nil || !strings.Contains(out, part) {
				t.Errorf("%v; %q is not in\n%s", err, part, out)
			}
		}
	}
}

func TestCheckPrintsJSON(t *testing.T) {
	server := answering(t, http.StatusNotFound, map[string]string{mcp.MethodDiscover: discovered})
	out, err := runCheck(t, "--json", server.URL)
	if err != nil {
		t.Fatal(err)
	}
	var got check.Report
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if !got.Usable || got.Era != "modern" || !reflect.DeepEqual(got.Capabilities, []string{"tools"}) || len(got.Clients) != len(mcp.Legacy) || got.Problem != "" {
		t.Errorf("got %+v", got)
	}
}

func TestCheckOfACommandThatPrintsSomethingElse(t *testing.T) {
	// It ends when it was asked something: of one that had ended before, another is started. So is one to be asked initialize (E-45).
	if out, err := runCheck(t, "--timeouts.start", "5s", "--", "sh", "-c", "echo usage: server; read -r asked"); err == nil || !strings.Contains(out, "; it printed 2 lines that are no MCP messages on its standard output") {
		t.Errorf("check ends with %v and\n%s", err, out)
	}
}

// What it says about authorities helps only where one is not known.
func TestAdviceOnAuthoritiesStandsWhereItHelps(t *testing.T) {
	plain := strings.Replace(answering(t, http.StatusNotFound, nil).URL, "http:", "https:", 1)
	if out, _ := runCheck(t, plain); !strings.Contains(out, "does not speak TLS; perhaps the URL should begin with http://\n") {
		t.Errorf("of a port without TLS check says\n%s", out)
	}
	server := httptest.NewTLSServer(canned(http.StatusNotFound, nil))
	defer server.Close()
	server.Config.ErrorLog = discard
	if out, _ := runCheck(t, server.URL); strings.Count(out, "authority") != 2 || !strings.Contains(out, "upstream-tls.ca") {
		t.Errorf("of an unknown authority check says\n%s", out)
	}
}

func TestTheLogCallsAServerLegacyOnlyWhenItIs(t *testing.T) {
	p := start(t, "serve", "--upstream", answering(t, http.StatusBadRequest, cannedAnswers["nothing"]).URL, "--listen", "127.0.0.1:0")
	p.expect("the bridge keeps trying")
	p.expect(`"era":"unknown"`)
}

// TestCheckTakesTheArgumentsOfStdio: who has trouble is told to write check in its place.
func TestCheckTakesTheArgumentsOfStdio(t *testing.T) {
	server := answering(t, http.StatusNotFound, map[string]string{mcp.MethodDiscover: discovered})
	if out, err := runCheck(t, "--upstream", server.URL, "--timeouts.flow", "1h", "--auth.mode", "agent", "--log.level", "debug"); err != nil || !strings.Contains(out, "canned 1") {
		t.Errorf("check ends with %v and\n%s", err, out)
	}
	file := filepath.Join(t.TempDir(), "b.yaml")
	if err := os.WriteFile(file, []byte("upstream: "+server.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := runCheck(t, "--config", file); err != nil || !strings.Contains(out, "canned 1") {
		t.Errorf("with a file check ends with %v and\n%s", err, out)
	}
	if err := fails(t, nil, "check", "--upstream", server.URL, server.URL); !strings.Contains(err.Error(), "the URL is there twice") {
		t.Error(err)
	}
}

// TestCheckOfAURLDoesNotReadTheFileOfServe: that is about another server.
func TestCheckOfAURLDoesNotReadTheFileOfServe(t *testing.T) {
	server := answering(t, http.StatusNotFound, map[string]string{mcp.MethodDiscover: discovered})
	if out := prints(t, []string{"BRIDGE_CONFIG=" + filepath.Join(t.TempDir(), "none")}, "check", server.URL); !strings.Contains(out, "canned 1") {
		t.Errorf("check says\n%s", out)
	}
}

// TestCheckGivesACommandTheEnvironmentOfStdio, and says so where that is not what serve gives.
func TestCheckGivesACommandTheEnvironmentOfStdio(t *testing.T) {
	t.Setenv("MY_API_KEY", "hush")
	server := append([]string{"--", "sh", "-c", `test -n "$MY_API_KEY" && exec "$0" "$@"`}, cannedCommand(t)...)
	out, err := runCheck(t, server...)
	if err != nil || !strings.Contains(out, "environment    given as bridge stdio gives it") || strings.Contains(out, "hush") {
		t.Errorf("check ends with %v and\n%s", err, out)
	}
	if out, err := runCheck(t, append([]string{"--command-env", "OTHER"}, server...)...); err == nil || strings.Contains(out, "environment") {
		t.Errorf("where something else is listed, check ends with %v and\n%s", err, out)
	}
}

func TestWhereCommandsGoIsSaid(t *testing.T) {
	for line, want := range map[string]string{
		"serve my-server --verbose":                      "unknown flag: --verbose; a command and its flags go after --, as in `bridge serve -- my-server`",
		"check my-server --verbose":                      "as in `bridge check -- my-server`",
		"stdio my-server":                                "a command after --, as in `bridge stdio -- my-server`",
		"check my-server":                                "URL: must begin with http:// or https://, like https://mcp.example.com/mcp; a command goes after --, as in `bridge check -- my-server`",
		"serve --verbose":                                "unknown flag: --verbose; `bridge serve --help` lists the flags",
		"ps my-server --verbose":                         "`bridge ps --help` lists the flags",
		"serve --upstream http://a.example -- my-server": `what follows "--": cannot be set beside upstream`,
	} {
		if err := fails(t, nil, strings.Fields(line)...); !strings.Contains(err.Error(), want) || exitCode(err) != exitUsage {
			t.Errorf("bridge %s: %v", line, err)
		}
	}
}

// TestCheckThatIsStoppedSaysSo, and calls the server nothing.
func TestCheckThatIsStoppedSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if err := run(ctx, []string{"check", deadURL}, surroundings{in: strings.NewReader(""), out: &out, err: io.Discard}); !errors.Is(err, check.ErrStopped) || out.Len() > 0 {
		t.Errorf("check ends with %v and\n%s", err, &out)
	}
}

// TestCheckSaysHowLongItWaited, and which setting says so.
func TestCheckSaysHowLongItWaited(t *testing.T) {
	if out, err := runCheck(t, "--timeouts.start", "200ms", "--", "sleep", "100"); err == nil || !strings.Contains(out, "did not answer in time: it has 200ms for its first answer (timeouts.start)") {
		t.Errorf("check ends with %v and\n%s", err, out)
	}
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer silent.Close()
	if out, err := runCheck(t, "--timeouts.discover", "200ms", silent.URL); err == nil || !strings.Contains(out, "did not answer in time: it has 200ms for its first answer (timeouts.discover)") {
		t.Errorf("check ends with %v and\n%s", err, out)
	}
}

// TestCheckAsksWhetherTheURLIsRight: what answers is a web server, or has the endpoint without the slash.
func TestCheckAsksWhetherTheURLIsRight(t *testing.T) {
	for status, want := range map[int]string{http.StatusNotImplemented: "failed with HTTP 501; is the URL that of an MCP server?", http.StatusNotFound: "the path of the URL ends with a slash, try it without"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		if out, err := runCheck(t, server.URL+"/mcp/"); err == nil || !strings.Contains(out, want) {
			t.Errorf("check ends with %v and\n%s", err, out)
		}
		server.Close()
	}
}

func TestTheVersionIsAFlagToo(t *testing.T) {
	want := prints(t, nil, "version")
	for _, flag := range []string{"--version", "-v"} {
		if got := prints(t, nil, flag); got != want {
			t.Errorf("bridge %s prints %q instead of %q", flag, got, want)
		}
	}
}

func TestCheckNamesWhatWasGivenInsteadOfAURL(t *testing.T) {
	if _, err := runCheck(t, "mcp.example.com"); err == nil || strings.Contains(err.Error(), "--upstream") || !strings.Contains(err.Error(), "URL: must begin with http://") {
		t.Errorf("check says %v", err)
	}
}
