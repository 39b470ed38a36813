package compat

import (
	"bytes"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/internal/mount"
	"github.com/mcpbridge/bridge/internal/testmode"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream/streamable"
)

var update = flag.Bool("update", false, "write the table of docs/compatibility.md instead of comparing it")

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(m)
}

// world is a legacy client, a bridge and a scripted modern server, joined by
// loopback HTTP.
type world struct {
	*testing.T
	version mcp.Version
	server  *server
	mount   *mount.Mount
	client  *client
	url     string
	log     *logBuffer
}

// logBuffer collects the bridge's log.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// newWorld starts a bridge for clients of version; options may change how.
func newWorld(t *testing.T, version mcp.Version, options func(*mount.Options)) *world {
	t.Helper()
	w := &world{T: t, version: version, server: newServer(t), log: &logBuffer{}}
	logger := zerolog.New(w.log)
	opt := mount.Options{Upstream: streamable.Options{URL: w.server.URL, Log: logger, StandardTransport: testmode.StandardHTTP()}}
	opt.Bridge.Log, opt.Legacy.Logger = logger, logger
	if options != nil {
		options(&opt)
	}
	m, err := mount.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(m)
	t.Cleanup(func() {
		m.Close()
		front.CloseClientConnections()
		front.Close()
	})
	w.mount, w.url = m, front.URL
	w.client = w.newClient()
	return w
}

func (w *world) newClient() *client {
	transport := &http.Transport{}
	w.Cleanup(transport.CloseIdleConnections)
	return &client{
		t: w.T, url: w.url, version: w.version, answers: map[string]func(string) string{},
		http: &http.Client{Transport: transport},
	}
}

// declared is what a client of the revision can declare at most.
func declared(version mcp.Version) string {
	switch {
	case version.AtLeast(mcp.V20251125):
		return `{"roots":{"listChanged":true},"sampling":{"tools":{},"context":{}},"elicitation":{"form":{},"url":{}},` +
			`"tasks":{"list":{}},"experimental":{"e":{}},"odd":{}}`
	case version.AtLeast(mcp.V20250618):
		return `{"roots":{"listChanged":true},"sampling":{},"elicitation":{},"experimental":{"e":{}},"odd":{}}`
	}
	return `{"roots":{"listChanged":true},"sampling":{},"experimental":{"e":{}},"odd":{}}`
}

// open lets the client initialize with everything that it can declare.
func (w *world) open() { w.Helper(); w.client.initialize(declared(w.version)) }

// kind says how a revision has a feature.
type kind byte

const (
	yes        kind = 'Y'
	translated kind = 'T'
	absent     kind = 'N'
)

// cell is one field of the table.
type cell struct {
	kind kind
	how  string
}

func (c cell) String() string {
	return map[kind]string{yes: "yes", translated: "translated", absent: "no"}[c.kind]
}

// The cells: what passes unchanged, what is carried another way, what the
// revision does not have.
func asItIs() cell          { return cell{kind: yes} }
func via(how string) cell   { return cell{translated, how} }
func lacks(how string) cell { return cell{absent, how} }

// feature is one row of the table.
type feature struct {
	name  string
	rules string // cited ones
	// kinds has one letter per revision, oldest first: what the cell must be.
	// The cell's text is made of what the exchange showed.
	kinds   string
	options func(*mount.Options)
	script  func(*server) // before the session is opened
	run     func(*world) cell
}

// group is a section of the table.
type group struct {
	title    string
	features []feature
}

// outcome is what an exchange may show, and what that means.
type outcome struct {
	cell cell
	want string
}

// which finds the outcome that got is the same JSON as.
func (w *world) which(what, got string, outcomes ...outcome) cell {
	w.Helper()
	for _, o := range outcomes {
		if same(got, o.want) {
			return o.cell
		}
	}
	w.Fatalf("%s is none of what was expected: %s", what, got)
	return cell{}
}

// kept is the outcome of what passes as it is.
func kept(want string) outcome { return outcome{asItIs(), want} }

// left is the outcome of what the revision does not have and leaves out.
func left(want string) outcome { return outcome{lacks("left out"), want} }

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}
