package stdio

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpbridge/bridge/internal/testprocess"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/upstream"
)

// childMode makes the test binary act as a server process.
const childMode = "UPSTREAM_TEST_CHILD"

// newStdio runs the test binary as a server of a kind.
func newStdio(t testing.TB, mode string, opt Options) *Client {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	opt.Command = exe
	opt.Env = append(opt.Env, childMode+"="+mode, "GORACE=atexit_sleep_ms=0")
	s, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// actAsChild is the main function of the server process.
func actAsChild(mode string) {
	switch mode {
	case "sdk":
		s := sdk.NewServer(&sdk.Implementation{Name: "child", Version: "1"}, nil)
		sdk.AddTool(s, &sdk.Tool{Name: "echo"}, func(_ context.Context, _ *sdk.CallToolRequest, a struct {
			Text string `json:"text"`
		}) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: a.Text}}}, nil, nil
		})
		_ = s.Run(context.Background(), &sdk.StdioTransport{})
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		serveChild(func(m jsonrpc.Message) {})
		select {}
	case "deserter":
		signal.Ignore(syscall.SIGTERM)
		if testprocess.Join(os.Getppid()) != nil {
			os.Exit(4)
		}
		serveChild(childTool)
		select {}
	case "fertile":
		signal.Ignore(syscall.SIGTERM)
		serveChild(childTool)
		select {}
	case "crash":
		os.Exit(3)
	case "modern": // takes nothing before server/discover
		up := false
		serveChild(func(m jsonrpc.Message) {
			switch {
			case m.Method == mcp.MethodDiscover:
				up = true
				fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"supportedVersions\":[\"2026-07-28\"]}}\n", m.ID)
			case !up, m.Method == "notifications/exit":
				os.Exit(3)
			default:
				childTool(m)
			}
		})
	case "once": // comes up for the first time only
		if _, err := os.Stat("been here"); err == nil {
			os.Exit(3)
		}
		_ = os.WriteFile("been here", nil, 0o600)
		actAsChild("modern")
	case "pinned": // comes up slowly but for the first time, and is of the era whose message comes first
		if _, err := os.Stat("been here"); err == nil {
			<-time.After(600 * time.Millisecond)
		}
		_ = os.WriteFile("been here", nil, 0o600)
		first := ""
		serveChild(func(m jsonrpc.Message) {
			first = cmp.Or(first, m.Method)
			switch {
			case m.Method == mcp.MethodInitialize:
				fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"protocolVersion\":\"2025-03-26\"}}\n", m.ID)
			case first == mcp.MethodInitialize && m.Method == mcp.MethodDiscover:
				fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32601,\"message\":\"unknown\"}}\n", m.ID)
			case m.Method == mcp.MethodDiscover:
				fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"supportedVersions\":[\"2026-07-28\"]}}\n", m.ID)
			default:
				childTool(m)
			}
		})
	case "mute": // but for the first time
		if _, err := os.Stat("been here"); err == nil {
			serveChild(func(jsonrpc.Message) {})
			return
		}
		_ = os.WriteFile("been here", nil, 0o600)
		actAsChild("modern")
	case "chatter":
		_, _ = os.Stdout.WriteString(strings.Repeat("{}\n", chatter))
	case "parent":
		actAsParent()
	case "legacy":
		serveChild(func(m jsonrpc.Message) {
			if m.Method == mcp.MethodInitialize {
				fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"protocolVersion\":\"2025-03-26\"}}\n", m.ID)
				return
			}
			fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32601,\"message\":\"unknown\"}}\n", m.ID)
		})
	case "older": // modern for the first time only
		if _, err := os.Stat("been here"); err == nil {
			actAsChild("fragile")
		}
		_ = os.WriteFile("been here", nil, 0o600)
		actAsChild("modern")
	case "laconic": // modern for the first time only, then of a server that says nothing to what it does not know
		if _, err := os.Stat("been here"); err != nil {
			_ = os.WriteFile("been here", nil, 0o600)
			actAsChild("modern")
			return
		}
		serveChild(func(m jsonrpc.Message) {
			switch m.Method {
			case mcp.MethodInitialize:
				fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"protocolVersion\":\"2025-03-26\"}}\n", m.ID)
			case mcp.MethodToolsCall:
				_ = os.WriteFile("executed", nil, 0o600)
				childTool(m)
			}
		})
	case "slow": // comes up when nobody waits for server/discover any more, and is of the era whose message comes last
		<-time.After(300 * time.Millisecond)
		actAsChild("both")
	case "warming": // refuses whatever it is asked at first
		asked := 0
		serveChild(func(m jsonrpc.Message) {
			if asked++; m.Method == mcp.MethodDiscover && asked > 4 {
				fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"supportedVersions\":[\"2026-07-28\"]}}\n", m.ID)
				return
			}
			fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32603,\"message\":\"not ready yet\"}}\n", m.ID)
		})
	case "both":
		serveChild(func(m jsonrpc.Message) {
			switch m.Method {
			case mcp.MethodInitialize:
				fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"protocolVersion\":\"2025-03-26\"}}\n", m.ID)
			case mcp.MethodDiscover:
				fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"supportedVersions\":[\"2026-07-28\"]}}\n", m.ID)
			}
		})
	case "fragile": // as servers of the Python SDK before 1.9.4 are
		up := false
		serveChild(func(m jsonrpc.Message) {
			if m.Method != mcp.MethodInitialize && !up {
				os.Exit(1)
			}
			up = true
			fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"protocolVersion\":\"2025-03-26\"}}\n", m.ID)
		})
	case "drafts": // speaks the draft for the first time only
		version := "2026-07-28"
		if _, err := os.Stat("been here"); err != nil {
			version = "DRAFT-2026-v1"
			_ = os.WriteFile("been here", nil, 0o600)
		}
		serveChild(func(m jsonrpc.Message) {
			switch {
			case m.Method == mcp.MethodDiscover:
				fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"supportedVersions\":[%q]}}\n", m.ID, version)
			case upstream.Declared(m.Params) != version:
				fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32022,\"message\":\"no\",\"data\":{\"supported\":[%q]}}}\n", m.ID, version)
			default:
				childTool(m)
			}
		})
	case "todraft":
		version := "DRAFT-2026-v1"
		if _, err := os.Stat("been here"); err != nil {
			version = "2026-07-28"
			_ = os.WriteFile("been here", nil, 0o600)
		}
		serveChild(func(m jsonrpc.Message) {
			switch {
			case m.Method == mcp.MethodDiscover:
				fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"supportedVersions\":[%q]}}\n", m.ID, version)
			case upstream.Declared(m.Params) != version:
				fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32022,\"message\":\"no\",\"data\":{\"supported\":[%q]}}}\n", m.ID, version)
			case strings.Contains(string(m.Params), `"ask"`):
				fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"result_type\":\"incomplete\",\"inputRequests\":{\"a\":{\"method\":\"elicitation/create\",\"params\":{}}},\"requestState\":\"x\"}}\n", m.ID)
			default:
				childTool(m)
			}
		})
	case "draft":
		serveChild(func(m jsonrpc.Message) {
			answer := `"result":{"supportedVersions":["DRAFT-2026-v1"],"capabilities":{}}`
			if !strings.Contains(string(m.Params), "DRAFT-2026-v1") {
				answer = `"error":{"code":-32004,"message":"no","data":{"supported":["DRAFT-2026-v1"]}}`
			}
			fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n", m.ID, answer)
		})
	default:
		serveChild(childTool)
	}
}

func serveChild(handle func(m jsonrpc.Message)) {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		m, _ := jsonrpc.Parse(in.Bytes())
		handle(m)
	}
}

var runs int // of the tool that counts them

// childTool answers a tools/call by its tool's name.
func childTool(m jsonrpc.Message) {
	name, _ := rawjson.Text(rawjson.Get(m.Params, "name"))
	switch name {
	case "pid":
		fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"pid\":%d}}\n", m.ID, os.Getpid())
	case "exit":
		os.Exit(3)
	case "answer and exit":
		fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n", m.ID)
		os.Exit(0)
	case "garbage":
		fmt.Fprintf(os.Stdout, "Server listening on stdio\n\n\x00\xff\n[]\n{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}\n{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n", m.ID)
	case "long":
		fmt.Fprintf(os.Stdout, "%s\n{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"x\":\"%s\"}}\n", strings.Repeat("x", 1<<16), m.ID, strings.Repeat("x", 1<<16))
	case "long, id last":
		fmt.Fprintf(os.Stdout, "{\"result\":{\"x\":\"%s\"},\"jsonrpc\":\"2.0\",\"id\":%s}\n", strings.Repeat("x", 1<<16), m.ID)
	case "malformed":
		fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"a\":1,\"a\":2}}\n", m.ID)
	case "slow": // and deaf meanwhile
		<-time.After(500 * time.Millisecond)
		fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n", m.ID)
	case "leave others":
		cmd := exec.Command("sleep", "300")
		_ = cmd.Start()
		fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"pid\":%d}}\n", m.ID, cmd.Process.Pid)
	case "runs, and hands on a refusal of another's":
		runs++
		supported := `["2026-07-28"]`
		if runs > 1 {
			supported = `["DRAFT-2026-v1"]`
		}
		fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32022,\"message\":\"run %d\",\"data\":{\"supported\":%s}}}\n", m.ID, runs, supported)
	case "stderr":
		fmt.Fprintf(os.Stderr, "error: all is well\n%s\n", strings.Repeat("y", 3*maxStderrLine))
		fmt.Fprintf(os.Stdout, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n", m.ID)
	}
}

// actAsParent is a bridge with a child that only SIGKILL ends, and that has started
// another process. It tells the numbers of both and waits to be killed.
func actAsParent() {
	exe, _ := os.Executable()
	s, err := New(Options{Command: exe, Env: []string{childMode + "=fertile"}})
	if err != nil {
		os.Exit(1)
	}
	answer, err := s.Do(context.Background(), tool("leave others"), nil)
	if err != nil {
		os.Exit(1)
	}
	fmt.Fprintf(os.Stdout, "%d %s\n", s.child.cmd.Process.Pid, rawjson.Get(answer.Result, "pid"))
	select {}
}

// A legacy server may end when it is asked what it does not know. Nobody is to blame for that, and each look finds what it is.
func TestE45ALegacyServerMayEndAtDiscover(t *testing.T) {
	s := newStdio(t, "fragile", Options{MinBackoff: time.Millisecond})
	prober := negotiate.NewProber(negotiate.Options{Timeout: time.Minute})
	for range 2 * freeEnds {
		v := prober.Again(t.Context(), "p", upstream.NewPeer(s, upstream.Call{Tenant: "p", Params: []byte(`{"_meta":{}}`)}))
		if v.Proven() != negotiate.Legacy || !slices.Equal(v.Versions, []string{"2025-03-26"}) {
			t.Fatalf("verdict %+v", v)
		}
	}
}

// A command that only ends is not one for older clients.
func TestA23ACommandThatEndsIsNoLegacyServer(t *testing.T) {
	s := newStdio(t, "crash", Options{MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond})
	v := negotiate.NewProber(negotiate.Options{Timeout: time.Minute}).Probe(t.Context(), "", upstream.NewPeer(s, upstream.Call{Params: []byte(`{"_meta":{}}`)}))
	if f := upstream.Refused(&v); v.Era != negotiate.Unknown || v.Err == nil || !strings.Contains(v.Err.Error(), "exit status 3") {
		t.Fatalf("verdict %+v, %v", v, f)
	}
}
