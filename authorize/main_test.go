package authorize

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

// TestMain makes the test binary three programs: the tests, the browser that the
// tests open, and a process that shares its logins with others.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 2 && os.Args[1] == "browse":
		browse(os.Args[2])
	case len(os.Args) > 2 && os.Args[1] == "process":
		process(os.Args[2])
	default:
		// A browser may outlive the bridge that opened it, and whoever waits for it.
		goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/mcpbridge/bridge/internal/browser.Open.func1"))
	}
}

// browse is a person who agrees to everything: it follows redirects.
func browse(page string) {
	resp, err := http.Get(page)
	if err != nil {
		os.Exit(1)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
}

// agreeing is the command of that browser.
func agreeing() []string { return []string{os.Args[0], "browse"} }

// orders tell a process what to do.
type orders struct {
	Server, Dir string
	Store       string // "": file
	Browser     []string
	Refused     Refusal
	Wait        time.Duration
	// Ask has it ask for the header to send instead, as often as that says.
	Ask int
}

// process does what its orders say and prints the header that it would send.
func process(text string) {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	a, err := New(Options{Server: o.Server, Dir: o.Dir, Store: cmp.Or(o.Store, "file"), Browser: o.Browser, Log: zerolog.New(os.Stderr)})
	if err != nil {
		panic(err)
	}
	defer a.Close()
	ctx, cancel := context.WithTimeout(context.Background(), o.Wait)
	defer cancel()
	if o.Ask == 0 {
		err = a.Renew(ctx, o.Refused)
	}
	header := ""
	for range max(1, o.Ask) {
		if err == nil {
			header, err = a.Authorization(ctx)
		}
	}
	_, _ = fmt.Fprintln(os.Stdout, header)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// startProcess runs another process of the same person.
func startProcess(t *testing.T, o *orders) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "process", string(text))
	cmd.Stderr = testWriter{t}
	return cmd
}

// testWriter shows what a process says in the log of the test.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(text []byte) (int, error) {
	w.t.Logf("process: %s", text)
	return len(text), nil
}
