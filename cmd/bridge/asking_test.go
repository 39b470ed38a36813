package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/ask/page"
	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/peers"
	"github.com/mcpbridge/bridge/internal/testport"
)

var (
	pageLink  = regexp.MustCompile(`http://127\.0\.0\.1:\d+/questions/q/\w+`)
	pageGuard = regexp.MustCompile(`name="guard" value="([^"]*)"`)
)

// tellLink has this program tell a server the link that it is given.
const tellLink = "tell-link"

// callTool returns the text of a tool's result.
func callTool(t *testing.T, c *peers.Client, name string) (text string, isError bool) {
	t.Helper()
	result, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	content, ok := result.Content[0].(*mcp.TextContent)
	if !ok {
		t.Fatalf("%T", result.Content[0])
	}
	return content.Text, result.IsError
}

// answerOn opens a page as a browser does, and sends its form.
func answerOn(t *testing.T, link, fields string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	defer browser.CloseIdleConnections()
	resp, err := browser.Get(link)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	guard := pageGuard.FindSubmatch(text)
	if guard == nil {
		t.Fatalf("no form at %s: %s", link, text)
	}
	resp, err = browser.Post(link, "application/x-www-form-urlencoded", strings.NewReader("guard="+string(guard[1])+"&"+fields))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the answer got %s", resp.Status)
	}
}

func TestClientsThatCannotBeAskedAreServed(t *testing.T) {
	server := peers.NewServer(t, peers.ServerOptions{})
	p := start(t, "serve", "--listen", "127.0.0.1:0", "--upstream", server.URL, "--questions", "page", "--questions.wait", "0s")
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			c := peers.NewClient(t, "http://"+p.address+"/mcp", peers.ClientOptions{Version: version, HTTP: client})
			text, isError := callTool(t, c, "greet")
			link := pageLink.FindString(text)
			if !isError || link == "" {
				t.Fatalf("the call got %s", text)
			}
			answerOn(t, link, "f0=Ada+"+version+"&action=accept")
			if text, _ = callTool(t, c, "greet"); text != "Hello, Ada "+version+"!" {
				t.Errorf("the same call again got %s", text)
			}
			if text, _ = callTool(t, c, "pay"); pageLink.FindString(text) == "" {
				t.Errorf("a question with an address got %s", text)
			}
		})
	}
}

// An address that people reach has its page beside the endpoints of clients.
func TestPublicPage(t *testing.T) {
	address, err := testport.Free()
	if err != nil {
		t.Fatal(err)
	}
	server := peers.NewServer(t, peers.ServerOptions{})
	p := start(t, "serve", "--listen", address, "--upstream", server.URL, "--questions", "page", "--questions.wait", "0s",
		"--questions.url", "http://"+address+"/questions")
	c := peers.NewClient(t, "http://"+address+"/mcp", peers.ClientOptions{Version: "2024-11-05", HTTP: client})
	text, _ := callTool(t, c, "greet")
	link := pageLink.FindString(text)
	if !strings.Contains(link, address) {
		t.Fatalf("the call got %s", text)
	}
	answerOn(t, link, "action=decline")
	if text, _ = callTool(t, c, "greet"); text != "no greeting: decline" {
		t.Error(text)
	}
	if status, _ := p.get("/questions/"); status != http.StatusOK {
		t.Errorf("the inbox answers %d", status)
	}
}

// Addresses of pages may overlap, by the file or by what a reload makes of it: each link leads to its own question.
func TestEachLinkLeadsToItsOwnPage(t *testing.T) {
	const one = "http://bridge.test/questions"
	d := newDesks(false, nil, zerolog.Nop())
	links := map[string]string{}
	for _, address := range []string{one, one + "/", one + "/q", one + "/q/c", one + "/c", "https://bridge.test/questions", "http://Bridge.test/questions"} {
		desk, err := d.desk(address)
		if err != nil {
			t.Fatal(err)
		}
		if links[address], err = desk.Ask(page.Question{Server: "the one at " + address}); err != nil {
			t.Fatal(err)
		}
	}
	if len(*d.public.Load()) != 6 {
		t.Errorf("%d pages: a slash at the end makes none of its own", len(*d.public.Load()))
	}
	pages := d.before(http.NotFoundHandler())
	get := func(address string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, address, nil))
		return w
	}
	for address, link := range links {
		for range 8 { // no order of a map decides
			if w := get(link); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), address) {
				t.Fatalf("%s got %d", link, w.Code)
			}
		}
	}
	for range 8 {
		if w := get(one + "/c/"); w.Code != http.StatusOK {
			t.Fatalf("what is at the head of a page below another: %d", w.Code)
		}
	}
}

func TestModelAndRootsOfTheConfiguration(t *testing.T) {
	const key = "k3y-of-the-test"
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer "+key {
			t.Errorf("%s %s", r.URL.Path, r.Header.Get("Authorization"))
		}
		_, _ = io.WriteString(w, `{"model":"small","choices":[{"message":{"content":"In short."},"finish_reason":"stop"}]}`)
	}))
	defer api.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "key")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := peers.NewServer(t, peers.ServerOptions{})
	p := start(t, "serve", "--listen", "127.0.0.1:0", "--upstream", server.URL, "--roots", "file://"+dir, "--log.level", "trace",
		"--sampling.provider", "openai", "--sampling.url", api.URL+"/v1", "--sampling.model", "small", "--sampling.key-file", file)
	c := peers.NewClient(t, "http://"+p.address+"/mcp", peers.ClientOptions{Version: "2024-11-05", HTTP: client})
	if text, isError := callTool(t, c, "summarize"); isError || !strings.Contains(text, "In short.") {
		t.Errorf("sampling: %s", text)
	}
	if text, isError := callTool(t, c, "workspace"); isError || !strings.Contains(text, dir) {
		t.Errorf("roots: %s", text)
	}
	if strings.Contains(p.errors.String(), key) {
		t.Error("the key is in the log")
	}
}

func TestModelWithoutItsKeyIsAnError(t *testing.T) {
	err := fails(t, nil, "serve", "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1/mcp",
		"--sampling.provider", "openai", "--sampling.model", "m", "--sampling.key-file", "/no/key")
	if !strings.Contains(err.Error(), "sampling.key-file") {
		t.Error(err)
	}
}

// A key goes up in a header: of one that cannot, requests would say that the model is out of reach.
func TestAModelsKeyIsOneLine(t *testing.T) {
	for text, good := range map[string]bool{"k3y\n": true, " k3y \r\n\n": true, "k3y\nk3y-2\n": false, "k3y\rx": false, "k\x003y": false} {
		file := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := newModel(&config.Sampling{Provider: "openai", URL: "https://a.example/v1", Model: "m", KeyFile: file})
		if (err == nil) != good || err != nil && (!strings.Contains(err.Error(), "sampling.key-file: "+file+" holds more than a key") || strings.Contains(err.Error(), "k3y")) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The command of questions.open is this program, which tells the test what it was given.
func TestPageOpensOnceForEachQuestion(t *testing.T) {
	opened := make(chan string, 16)
	teller := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { opened <- r.FormValue("link") }))
	defer teller.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := peers.NewServer(t, peers.ServerOptions{})
	p := start(t, "serve", "--listen", "127.0.0.1:0", "--upstream", server.URL, "--questions", "page", "--questions.wait", "0s",
		"--questions.open", self+" "+tellLink+" "+teller.URL)
	c := peers.NewClient(t, "http://"+p.address+"/mcp", peers.ClientOptions{Version: "2024-11-05", HTTP: client})
	for _, name := range []string{"Ada", "Bob"} {
		text, _ := callTool(t, c, "greet")
		link := <-opened
		if link == "" || link != pageLink.FindString(text) {
			t.Fatalf("opened %q for %s", link, text)
		}
		if _, isError := callTool(t, c, "greet"); !isError { // the same call again, before the answer
			t.Fatal("the call did not wait")
		}
		answerOn(t, link, "f0="+name+"&action=accept")
		if text, _ = callTool(t, c, "greet"); text != "Hello, "+name+"!" {
			t.Errorf("the call got %s", text)
		}
	}
	if len(opened) != 0 {
		t.Errorf("%d more tabs", len(opened))
	}
}
