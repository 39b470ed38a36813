package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/bridge/internal/peers"
)

// adminOf returns where the admin listener of a program is, and its token.
func adminOf(p *process) (url, token string) {
	p.t.Helper()
	p.expect("#token=")
	found := regexp.MustCompile(`(http://[^/]+/)#token=([A-Z0-9]+)`).FindStringSubmatch(p.errors.String())
	if found == nil {
		p.t.Fatalf("no address in\n%s", p.errors)
	}
	return found[1], found[2]
}

// seen gets a page of the admin listener.
func seen(t *testing.T, url, token string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

func TestMetricsOfACallWithAQuestion(t *testing.T) {
	server := peers.NewServer(t, peers.ServerOptions{})
	p := start(t, "serve", "--upstream", server.URL, "--listen", "127.0.0.1:0", "--admin.listen", "127.0.0.1:0", "--metrics.tools", "on")
	url, token := adminOf(p)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := peers.Dial(ctx, "http://"+p.address+"/mcp", peers.ClientOptions{HTTP: client,
		Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return peers.Accept(map[string]any{"name": "Ada Lovelace"})
		}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.ListTools(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Call(ctx, "greet", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Call(ctx, "no such tool", nil); err == nil {
		t.Fatal("there is such a tool")
	}
	_ = c.Close()
	status, text := seen(t, url+"metrics", token)
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	for _, line := range []string{
		`mcp_server_operation_duration_seconds_count{error_type="",gen_ai_operation_name="execute_tool",gen_ai_tool_name="greet",mcp_method_name="tools/call",mcp_protocol_version="2025-11-25",mcpbridge_transport="streamable-http",mount="/mcp",network_protocol_name="http",network_protocol_version="1.1",network_transport="tcp",rpc_response_status_code=""} 1`,
		`gen_ai_tool_name="_OTHER",mcp_method_name="tools/call",mcp_protocol_version="2025-11-25",mcpbridge_transport="streamable-http",mount="/mcp",network_protocol_name="http",network_protocol_version="1.1",network_transport="tcp",rpc_response_status_code="-32602"} 1`,
		`mcp_client_operation_duration_seconds_count{error_type="",gen_ai_operation_name="execute_tool",gen_ai_tool_name="greet",mcp_method_name="tools/call",mcp_protocol_version="2026-07-28",mcpbridge_result="input_required",mount="/mcp",network_protocol_name="http",network_protocol_version="1.1",network_transport="tcp",rpc_response_status_code="",server_address="127.0.0.1",server_port="` + port(server.URL) + `"} 1`,
		`mcp_client_operation_duration_seconds_count{error_type="",gen_ai_operation_name="",gen_ai_tool_name="",mcp_method_name="elicitation/create",mcp_protocol_version="2025-11-25",mcpbridge_result="complete",mount="/mcp",network_protocol_name="http",network_protocol_version="1.1",network_transport="tcp",rpc_response_status_code="",server_address="",server_port=""} 1`,
		`mcp_method_name="initialize",mcp_protocol_version="2025-11-25",mcpbridge_transport="streamable-http",mount="/mcp",network_protocol_name="http",network_protocol_version="1.1"`,
		`mcpbridge_questions_total{kind="form",mount="/mcp",outcome="accept"} 1`,
		`mcpbridge_flows_ended_total{cause="",end="complete",mount="/mcp"}`,
		`mcpbridge_flows_ended_total{cause="server_error",end="failed",mount="/mcp"} 1`,
		`mcpbridge_sessions_ended_total{mount="/mcp",reason="delete"} 1`,
		`mcpbridge_upstream_ready{mount="/mcp"} 1`,
		`mcpbridge_upstream_info{draft="",era="modern",mount="/mcp",`,
		`mcpbridge_upstream_connections{mount="/mcp",state="open"} `,
		`mcpbridge_listens_upstream{mount="/mcp",state="open"} `,
		`mcpbridge_clients_total{client="legacy-client",era="legacy",mount="/mcp",version="2025-11-25"} 1`,
		`mcpbridge_build_info{goversion="go`,
		`version="2025-11-25"} 1`,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("missing: %s in\n%s", line, grep(text, line[:20]))
		}
	}
	if strings.Contains(text, "Lovelace") || strings.Contains(text, "no such tool") {
		t.Error("a metric tells what a call said")
	}
}

// port returns that of an address.
func port(address string) string {
	return address[strings.LastIndex(address, ":")+1:][:strings.IndexAny(address[strings.LastIndex(address, ":")+1:]+"/", "/")]
}

// grep returns the lines of text that begin with a prefix.
func grep(text, prefix string) string {
	var found strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			found.WriteString(line)
		}
	}
	return found.String()
}

func TestTheAdminListenerIsAnother(t *testing.T) {
	p := start(t, "serve", "--upstream", deadURL, "--listen", "127.0.0.1:0", "--admin.listen", "127.0.0.1:0")
	url, token := adminOf(p)
	if status, _ := seen(t, url+"metrics", ""); status != http.StatusUnauthorized {
		t.Errorf("without the token: %d", status)
	}
	for _, path := range []string{"/metrics", "/door/door.mjs", "/door/enter"} {
		if status, body := p.get(path); status != http.StatusNotFound {
			t.Errorf("clients get %s: %d %s", path, status, body)
		}
	}
	if status, _ := seen(t, url+"mcp", token); status != http.StatusNotFound {
		t.Errorf("clients are served on the admin listener: %d", status)
	}
}

func TestATokenOfTheOperatorsIsNotShown(t *testing.T) {
	dir := t.TempDir()
	file, socket := filepath.Join(dir, "token"), filepath.Join(dir, "admin.sock")
	if err := os.WriteFile(file, []byte("hush-hush-hush-hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, "serve", "--upstream", deadURL, "--listen", "127.0.0.1:0", "--admin.listen", "unix:"+socket, "--admin.token-file", file)
	p.expect("over the socket")
	if strings.Contains(p.errors.String(), "hush") {
		t.Errorf("the token is in\n%s", p.errors)
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

func TestAPublicAdminListenerIsRefused(t *testing.T) {
	for _, address := range []string{":8081", "0.0.0.0:8081", "[::]:8081", "10.0.0.1:8081", "bridge.example:8081"} {
		err := fails(t, nil, "serve", "--upstream", deadURL, "--admin.listen", address)
		if exitCode(err) != exitUsage || !strings.Contains(err.Error(), "can be reached from other machines") {
			t.Errorf("%s: %v", address, err)
		}
	}
	err := fails(t, nil, "serve", "--upstream", deadURL, "--listen", "127.0.0.1:0", "--admin.listen", "127.0.0.1:0", "--admin.token-file", "/no/such/file")
	if !strings.Contains(err.Error(), "admin.token-file") {
		t.Error(err)
	}
}

// TestWhatIsUnderWayCanBeEnded: its client gets an error.
func TestWhatIsUnderWayCanBeEnded(t *testing.T) {
	t.Cleanup(func() { setLevel("info") })
	server := peers.NewServer(t, peers.ServerOptions{})
	p := start(t, "serve", "--upstream", server.URL, "--listen", "127.0.0.1:0", "--admin.listen", "127.0.0.1:0", "--admin.actions", "on")
	url, token := adminOf(p)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := peers.Dial(ctx, "http://"+p.address+"/mcp", peers.ClientOptions{HTTP: client})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { _, err := c.Call(ctx, "hang", nil); ended <- err }()
	var body string
	for !strings.Contains(body, ">hang<") && ctx.Err() == nil {
		_, body = seen(t, url+"waiting", token)
	}
	session := regexp.MustCompile(`id=([A-Z0-9]{8})`).FindStringSubmatch(body)
	if session == nil {
		t.Fatalf("no session in %s", body)
	}
	if status := deed(t, url, token, "do=end-call&mount=/mcp&id=f1&session="+session[1]); status != http.StatusSeeOther {
		t.Errorf("ending the call: %d", status)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "ended by who runs the bridge") {
		t.Errorf("the client gets %v", err)
	}
	if status := deed(t, url, token, "do=end-session&mount=/mcp&id="+session[1]); status != http.StatusSeeOther {
		t.Errorf("ending the session: %d", status)
	}
	if status := deed(t, url, token, "do=level&level=debug"); status != http.StatusSeeOther {
		t.Errorf("setting the level: %d", status)
	}
	for _, line := range []string{"a call was ended on the admin", "a session was ended on the admin", "the level of the log was set"} {
		p.expect(line)
	}
	if _, err := c.Call(ctx, "echo", nil); err == nil {
		t.Error("the session goes on")
	}
	_ = c.Close()
}

// deed posts a form to the admin listener.
func deed(t *testing.T, url, token, form string) (status int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"action", strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}
