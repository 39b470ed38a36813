package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/internal/testmode"
	"github.com/mcpbridge/bridge/internal/testport"
)

// TestMain runs the tests, or in a process that a test started the program itself, the
// canned server over stdio, or a browser that only tells what it was to open.
func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		main()
		return
	}
	if len(os.Args) == 3 && os.Args[1] == cannedArgument {
		serveCanned(os.Args[2], os.Stdin, os.Stdout)
		return
	}
	if len(os.Args) == 4 && os.Args[1] == tellLink {
		_, _ = http.PostForm(os.Args[2], url.Values{"link": {os.Args[3]}})
		return
	}
	// Tests that run beside each other wait for processes, leases and deadlines: more of them than there are
	// processors. What the command line says comes after, and counts.
	_ = flag.Set("test.parallel", "8")
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/mcpbridge/bridge/internal/browser.Open.func1"))
}

// patience bounds every wait; reaching it is a failure.
const patience = 20 * time.Second

// process is a run of the program inside the test.
type process struct {
	t       *testing.T
	address string
	errors  *lines
	stop    context.CancelFunc
	done    chan struct{} // closed when the program has ended with err
	err     error
}

// start runs the program until it listens. The test's end stops it.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	return startWith(t, nil, args...)
}

// startWith is start in an environment.
func startWith(t *testing.T, environ []string, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p := &process{t: t, errors: &lines{grown: make(chan struct{}, 1)}, stop: cancel, done: make(chan struct{})}
	started := make(chan string, 1)
	env := surroundings{in: strings.NewReader(""), out: io.Discard, err: p.errors, environ: append(append(testmode.Environ(), "CI=true"), environ...), started: func(a string) { started <- a }}
	go func() {
		defer close(p.done)
		p.err = run(ctx, args, env)
	}()
	select {
	case p.address = <-started:
	case <-p.done:
		t.Fatalf("the program ended with %v\n%s", p.err, p.errors)
	case <-time.After(patience):
		t.Fatal("the program does not listen")
	}
	t.Cleanup(func() {
		cancel()
		_ = p.wait() // its error is for the test to judge
	})
	return p
}

// wait returns what the program ended with.
func (p *process) wait() error {
	select {
	case <-p.done:
		return p.err
	case <-time.After(patience):
		p.t.Errorf("the program does not end\n%s", p.errors)
		return nil
	}
}

func (p *process) get(path string) (status int, body string) {
	p.t.Helper()
	resp, err := client.Get("http://" + p.address + path)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// client keeps no connection, so that none outlives its test.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// lines collects what the program writes to standard error.
type lines struct {
	mu    sync.Mutex
	text  bytes.Buffer
	grown chan struct{}
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.grown <- struct{}{}:
	default:
	}
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// expect waits until the program has written text.
func (p *process) expect(text string) {
	p.t.Helper()
	deadline := time.After(patience)
	for !strings.Contains(p.errors.String(), text) {
		select {
		case <-p.errors.grown:
		case <-deadline:
			p.t.Fatalf("the program does not say %q but\n%s", text, p.errors)
		}
	}
}

// fails runs the program and returns the error that it must end with.
func fails(t *testing.T, environ []string, args ...string) error {
	t.Helper()
	err := run(t.Context(), args, surroundings{in: strings.NewReader(""), out: io.Discard, err: io.Discard, environ: environ})
	if err == nil {
		t.Fatalf("%q succeeded", args)
	}
	return err
}

// prints runs the program and returns what it writes to standard output.
func prints(t *testing.T, environ []string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), args, surroundings{in: strings.NewReader(""), out: &out, err: io.Discard, environ: environ}); err != nil {
		t.Fatalf("%q failed: %v", args, err)
	}
	return out.String()
}

// deadURL is one on which nobody listens.
const deadURL = "http://" + testport.Closed + "/mcp"

// answering starts an upstream that gives each method its canned response body;
// ID in it stands for the request's id.
func answering(t *testing.T, status int, byMethod map[string]string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(canned(status, byMethod))
	t.Cleanup(server.Close)
	return server
}
