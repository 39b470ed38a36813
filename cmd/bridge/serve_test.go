package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/mcp"
)

func TestPortTakenNamesThePortAndAnother(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	err = fails(t, nil, "serve", "--upstream", deadURL, "--listen", address)
	want := address + " is taken by another program; stop that one, or choose another address with --listen " +
		"127.0.0.1:"
	if !strings.HasPrefix(err.Error(), want) || exitCode(err) != exitFailure {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestWrongConfigurationIsReportedWholeBeforeAnythingStarts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b.yaml")
	if err := os.WriteFile(file, []byte("limits: {rounds: 0}\nlisen: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := fails(t, []string{"BRIDGE_PROFILE=lax"}, "serve", "--config", file, "--timeouts.flow", "1y")
	for _, part := range []string{":1: limits.rounds", `:2: unknown key "lisen"`, "BRIDGE_PROFILE: ", "--timeouts.flow: ", "upstream: is missing"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in\n%v", part, err)
		}
	}
	if exitCode(err) != exitUsage {
		t.Errorf("exit code %d, want %d", exitCode(err), exitUsage)
	}
}

func TestWrongCommandLines(t *testing.T) {
	for _, args := range [][]string{{"srve"}, {"serve", "https://a"}, {"serve", "--nope"}, {"version", "now"}} {
		if err := fails(t, nil, args...); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "`") {
			t.Errorf("%q ended with code %d: %v", args, exitCode(err), err)
		}
	}
}

func TestUnreachableUpstreamIsWarnedAboutAndDoesNotStopTheBridge(t *testing.T) {
	p := start(t, "serve", "--upstream", deadURL, "--listen", "127.0.0.1:0")
	p.expect("connection refused")
	p.expect("the bridge keeps trying")
	if status, body := p.get("/healthz"); status != http.StatusOK {
		t.Errorf("/healthz answers %d %s", status, body)
	}
	if status, body := p.get("/readyz"); status != http.StatusServiceUnavailable || body != `{"status":"waiting for the upstream"}`+"\n" {
		t.Errorf("/readyz answers %d %s", status, body)
	}
	p.stop()
	if err := p.wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
	p.expect(`"drain":"30s"`)
	p.expect(`"message":"stopped"`)
}

func TestReadyOnceTheUpstreamHasAnswered(t *testing.T) {
	server := answering(t, http.StatusNotFound, map[string]string{mcp.MethodDiscover: discovered})
	p := start(t, "serve", "--upstream", server.URL, "--listen", "127.0.0.1:0")
	p.expect("the upstream is ready")
	if status, body := p.get("/readyz"); status != http.StatusOK || body != `{"status":"ready"}`+"\n" {
		t.Errorf("/readyz answers %d %s", status, body)
	}
}

func TestLegacyOnlyUpstreamIsNamedWithItsVersionsAndRelayedTo(t *testing.T) {
	server := answering(t, http.StatusBadRequest, map[string]string{
		mcp.MethodInitialize: `{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"old","version":"1"}}}`,
	})
	p := start(t, "serve", "--upstream", server.URL, "--listen", "127.0.0.1:0")
	p.expect("they are relayed to it unchanged")
	p.expect(`"versions":["2025-06-18"]`)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for status, _ := p.get("/readyz"); status != http.StatusOK; status, _ = p.get("/readyz") {
		<-look.C // the log says what the server is before the endpoint is ready
	}
	if _, body := p.post("/mcp", initialize); !strings.Contains(body, `"name":"old"`) {
		t.Errorf("initialize answers %s", body)
	}
	never := start(t, "serve", "--upstream", server.URL, "--listen", "127.0.0.1:0", "--legacy-relay", "never")
	never.expect("the upstream is a legacy server: it offers 2025-06-18")
}

func TestUntrustedCertificateOfTheUpstreamTellsWhereToPutTheAuthority(t *testing.T) {
	server := httptest.NewTLSServer(canned(http.StatusNotFound, map[string]string{mcp.MethodDiscover: discovered}))
	defer server.Close()
	server.Config.ErrorLog = discard
	p := start(t, "serve", "--upstream", server.URL, "--listen", "127.0.0.1:0")
	p.expect("upstream-tls.ca")

	trusting := start(t, "serve", "--upstream", server.URL, "--listen", "127.0.0.1:0", "--upstream-tls.ca", certificateOf(t, server))
	trusting.expect("the upstream is ready")
}

func TestUpstreamThatWantsAuthorizationIsReady(t *testing.T) {
	server := refusing(t)
	p := start(t, "serve", "--upstream", server.URL, "--listen", "127.0.0.1:0")
	p.expect("wants clients to authorize")
	if status, _ := p.get("/readyz"); status != http.StatusOK {
		t.Errorf("/readyz answers %d", status)
	}
}

// TestUpstreamThatRefusesTheConfiguredTokenSaysSo: waiting for clients to authorize would be of no use.
func TestUpstreamThatRefusesTheConfiguredTokenSaysSo(t *testing.T) {
	server := refusing(t)
	p := startWith(t, []string{"BRIDGE_HEADERS=Authorization: Bearer hush"}, "serve", "--upstream", server.URL, "--listen", "127.0.0.1:0")
	p.expect("refused the configured Authorization (HTTP 401): correct it in BRIDGE_HEADERS")
	if log := p.errors.String(); strings.Contains(log, "hush") || strings.Contains(log, "wants clients to authorize") {
		t.Error(log)
	}
}

// TestTheLogDoesNotCallAServerReadyThatRefusesAll: the bridge signs in when somebody calls.
func TestTheLogDoesNotCallAServerReadyThatRefusesAll(t *testing.T) {
	p := start(t, "serve", "--upstream", refusing(t).URL, "--listen", "127.0.0.1:0", "--auth.mode", "agent", "--auth.dir", t.TempDir(), "--auth.store", "file", "--auth.browser", "off")
	p.expect("the upstream is there and wants the bridge to sign in")
	if strings.Contains(p.errors.String(), "the upstream is ready") {
		t.Error(p.errors)
	}
}

// refusing is a server that answers nobody without credentials, which it never finds good.
func refusing(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestMissingFilesOfTLSAreErrors(t *testing.T) {
	for _, args := range [][]string{
		{"--upstream-tls.ca", "/no/ca.pem"},
		{"--upstream-tls.cert", "/no/c.pem", "--upstream-tls.key", "/no/k.pem"},
		{"--tls.cert", "/no/c.pem", "--tls.key", "/no/k.pem"},
	} {
		err := fails(t, nil, append([]string{"serve", "--listen", "127.0.0.1:0", "--upstream", "https://a.example/"}, args...)...)
		if !strings.Contains(err.Error(), args[0][2:]) || !strings.Contains(err.Error(), "/no/c") {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestSeveralUpstreamsUnderPathsOfOneListener(t *testing.T) {
	a := answering(t, http.StatusNotFound, map[string]string{mcp.MethodDiscover: discovered,
		mcp.MethodPing: "", "tools/list": `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","tools":[{"name":"of_a","inputSchema":{"type":"object"}}]}}`})
	b := answering(t, http.StatusNotFound, map[string]string{mcp.MethodDiscover: discovered,
		"tools/list": `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","tools":[{"name":"of_b","inputSchema":{"type":"object"}}]}}`})
	file := filepath.Join(t.TempDir(), "b.yaml")
	text := "listen: 127.0.0.1:0\nupstreams:\n- {path: /a, upstream: '" + a.URL + "'}\n- {path: /b, upstream: '" + b.URL + "'}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, "serve", "--config", file)
	for path, want := range map[string]string{"/a": "of_a", "/b": "of_b"} {
		if status, body := p.post(path, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s answers %d %s", path, status, body)
		}
	}
	if status, _ := p.get("/c"); status != http.StatusNotFound {
		t.Errorf("/c answers %d", status)
	}
}

func TestUnixSocketIsServedAndADeadOneReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	dead, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	dead.Close()
	p := start(t, "serve", "--upstream", deadURL, "--listen", "unix:"+path)
	conn, err := net.Dial("unix", p.address)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if err := fails(t, nil, "serve", "--upstream", deadURL, "--listen", "unix:"+path); !strings.Contains(err.Error(), "is taken") {
		t.Errorf("a second bridge on the socket fails with %v", err)
	}
}

func TestSocketThatCannotBeMadeNamesItsDirectory(t *testing.T) {
	dir := t.TempDir()
	missing := "unix:" + filepath.Join(dir, "no", "s")
	err := fails(t, nil, "serve", "--upstream", deadURL, "--listen", missing)
	want := "the directory of " + missing + " does not exist; create it, or choose another path with --listen unix:OTHER-PATH"
	if err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
