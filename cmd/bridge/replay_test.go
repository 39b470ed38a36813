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

// recorded makes a call with a question through a bridge that records, and returns the file.
func recorded(t *testing.T, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	server := peers.NewServer(t, peers.ServerOptions{})
	p := start(t, append([]string{"serve", "--upstream", server.URL, "--listen", "127.0.0.1:0", "--record", dir}, flags...)...)
	book(t, p.address)
	p.stop()
	_ = p.wait() // its error is for the test to judge
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q %v", files, err)
	}
	return files[0]
}

// book opens a session, and makes a call of three rounds with a question each.
func book(t *testing.T, address string) {
	t.Helper()
	bookWith(t, address, nil)
}

func bookWith(t *testing.T, address string, meta mcp.Meta) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := peers.Dial(ctx, "http://"+address+"/mcp", peers.ClientOptions{HTTP: client,
		Elicit: func(_ context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			if strings.Contains(p.Message, "fly") {
				return peers.Accept(map[string]any{"city": "OSL"})
			}
			return peers.Accept(map[string]any{"row": 12, "window": true})
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "book", Arguments: map[string]any{"passenger": "Ada Lovelace"}, Meta: meta})
	if err != nil {
		t.Fatal(err)
	}
	if got := peers.Text(res); got != "Booked Ada Lovelace to OSL, row 12, window true." {
		t.Fatal(got)
	}
}

func TestARecordingIsAskedAgain(t *testing.T) {
	for name, flags := range map[string][]string{"redacted": nil, "with payloads": {"--admin.payloads", "on"}} {
		file := recorded(t, flags...)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if told := strings.Contains(string(text), "Lovelace"); told != (flags != nil) {
			t.Errorf("%s: what a person answered is recorded: %t\n%s", name, told, text)
		}
		if regexp.MustCompile(`"requestState":"[^s]`).Match(text) {
			t.Errorf("%s: request state is recorded\n%s", name, text)
		}
		server := peers.NewServer(t, peers.ServerOptions{})
		out, err := told(t, "replay", file, "--against", server.URL)
		if err != nil || !strings.Contains(out, "same     tools/call book") || strings.Contains(out, "DIFFERS") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		other := peers.NewServer(t, peers.ServerOptions{Wrap: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Mcp-Name") == "book" {
					http.Error(w, "out of order", http.StatusInternalServerError)
					return
				}
				next.ServeHTTP(w, r)
			})
		}})
		out, err = told(t, "replay", file, "--against", other.URL)
		if exitCode(err) != exitFailure || !strings.Contains(out, "DIFFERS  tools/call book") {
			t.Errorf("%s, against another server: %v\n%s", name, err, out)
		}
	}
}

// TestARecordingPlaysTheServer: a bridge in front of it serves the client as the server did.
func TestARecordingPlaysTheServer(t *testing.T) {
	file := recorded(t, "--admin.payloads", "on")
	player := start(t, "replay", file, "--serve", "127.0.0.1:0")
	p := start(t, "serve", "--upstream", "http://"+player.address+"/mcp", "--listen", "127.0.0.1:0")
	book(t, p.address)
}

// TestARecordingIsPlayedToNoForeignPage: neither to one that has rebound its name, nor to one of another origin.
func TestARecordingIsPlayedToNoForeignPage(t *testing.T) {
	player := start(t, "replay", recorded(t, "--admin.payloads", "on"), "--serve", "127.0.0.1:0")
	for name, tt := range map[string]struct {
		host, header, value string
		want                int
	}{
		"a program": {player.address, "Accept", "*/*", http.StatusOK}, "a rebound name": {"evil.example:8082", "Accept", "*/*", http.StatusForbidden},
		"another origin": {player.address, "Origin", "http://evil.example", http.StatusForbidden}, "its form": {player.address, "Sec-Fetch-Site", "cross-site", http.StatusForbidden},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+player.address+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = tt.host
		req.Header.Set("Content-Type", "text/plain")
		req.Header.Set(tt.header, tt.value)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != tt.want {
			t.Errorf("%s: %s", name, resp.Status)
		}
	}
}

func TestReplaySaysWhatItNeeds(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for says, args := range map[string][]string{
		"either --against URL or --serve": {"replay", empty},
		"FILE":                            {"replay"},
		"no recording":                    {"replay", empty, "--against", "http://127.0.0.1:1"},
	} {
		if _, err := told(t, args...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// A setting that names a place where nothing can be written is refused at the start, like one that names a missing file: days later
// nobody could have what was to be in there.
func TestAPlaceToWriteToThatIsMissingIsRefusedAtTheStart(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for says, flags := range map[string][]string{
		"record: the directory " + missing + " does not exist": {"--record", missing, "--admin.listen", "127.0.0.1:0"},
		"record: " + file + " is no directory":                 {"--record", file},
		"admin.report: stat " + missing:                        {"--admin.report", filepath.Join(missing, "clients.json")},
	} {
		err := fails(t, nil, append([]string{"serve", "--upstream", deadURL, "--listen", "127.0.0.1:0"}, flags...)...)
		if !strings.HasPrefix(err.Error(), says) || exitCode(err) != exitUsage {
			t.Errorf("%q: got %v, want %s", flags, err, says)
		}
	}
}

// TestARecordingThatCannotBeMadeHarmsNoClientOfStdio: it is served all the same.
func TestARecordingThatCannotBeMadeHarmsNoClientOfStdio(t *testing.T) {
	server := peers.NewServer(t, peers.ServerOptions{})
	answers, log := dialogue(t, []string{"--upstream", server.URL, "--record", filepath.Join(t.TempDir(), "missing")}, initialize)
	if !strings.Contains(answers[0], `"result"`) || !strings.Contains(log, "nothing is recorded") {
		t.Errorf("got %s\n%s", answers[0], log)
	}
}

// told runs the program and returns what it wrote, and what it ended with.
func told(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	err := run(t.Context(), args, surroundings{in: strings.NewReader(""), out: &out, err: io.Discard})
	return out.String(), err
}
