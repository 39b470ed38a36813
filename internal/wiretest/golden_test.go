package wiretest

import (
	"bytes"
	"context"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/internal/peers"
	"github.com/mcpbridge/bridge/internal/wirelog"
	"github.com/mcpbridge/bridge/observe/record"
)

var update = flag.Bool("update", false, "write the golden transcripts instead of comparing")

func TestMain(m *testing.M) {
	flag.Parse()
	goleak.VerifyTestMain(m)
}

// wire is one client, one bridge and one server with a record of both hops.
type wire struct {
	t      *testing.T
	ctx    context.Context
	rec    *wirelog.Recorder
	server *peers.Server
	url    string
	from   int // entry at which the transcript starts
}

func newWire(t *testing.T, opts peers.ServerOptions) *wire {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	w := &wire{t: t, ctx: ctx, rec: &wirelog.Recorder{}}
	opts.Wrap = func(h http.Handler) http.Handler { return w.rec.Handler(wirelog.Upstream, h) }
	w.server = peers.NewServer(t, opts)
	w.url = startBridge(t, w.server.URL, func(h http.Handler) http.Handler {
		return w.rec.Handler(wirelog.Downstream, h)
	})
	return w
}

// client connects a legacy client; the transcript starts after its handshake.
func (w *wire) client(opts peers.ClientOptions) *peers.Client {
	w.t.Helper()
	opts.Name = "old"
	c := peers.NewClient(w.t, w.url, opts)
	w.from = len(w.rec.Entries())
	return c
}

// call calls a tool and returns the text of its result.
func (w *wire) call(c *peers.Client, tool string, args any) string {
	w.t.Helper()
	res, err := c.Call(w.ctx, tool, args)
	if err != nil {
		return "error: " + err.Error()
	}
	if res.IsError {
		return "tool error: " + peers.Text(res)
	}
	return peers.Text(res)
}

// until waits for an entry on the wire.
func (w *wire) until(what string, ok func(wirelog.Entry) bool) {
	w.t.Helper()
	for {
		changed := w.rec.Changed()
		for _, e := range w.rec.Entries()[w.from:] {
			if ok(e) {
				return
			}
		}
		select {
		case <-changed:
		case <-w.ctx.Done():
			w.t.Fatalf("waiting for %s; so far:\n%s", what, Text(Lines(w.rec.Entries(), w.from)))
		}
	}
}

// golden compares the transcript with testdata/<test name>.jsonl once every
// request has its status.
func (w *wire) golden(title string) {
	w.t.Helper()
	w.settled()
	lines := Lines(w.rec.Entries(), w.from)
	path := filepath.Join("testdata", filepath.FromSlash(w.t.Name())+".jsonl")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(path, written(w.t, title, lines), 0o644); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatalf("no golden transcript (go test -update writes it): %v", err)
	}
	if bytes.Equal(written(w.t, title, lines), want) {
		return
	}
	_, before, err := record.Read(bytes.NewReader(want))
	w.t.Errorf("the wire differs from %s (%v)\n--- got\n%s\n--- want\n%s", path, err, Text(lines), Text(before))
}

// written returns lines as a recording.
func written(t *testing.T, title string, lines []record.Line) []byte {
	t.Helper()
	text, err := record.Append(nil, record.Head{Format: record.Format, Version: record.Version, Title: title, Payloads: true})
	for i := 0; i < len(lines) && err == nil; i++ {
		text, err = record.Append(text, &lines[i])
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// settled waits until no request of the transcript is without its status.
func (w *wire) settled() {
	w.t.Helper()
	for {
		changed, open := w.rec.Changed(), map[int]bool{}
		for _, e := range withoutHousekeeping(w.rec.Entries(), w.from) {
			switch {
			case e.Kind == wirelog.Request && e.Status == 0:
				open[e.Exchange] = true
			case e.Kind == wirelog.Abandoned:
				delete(open, e.Exchange)
			}
		}
		if len(open) == 0 {
			return
		}
		select {
		case <-changed:
		case <-w.ctx.Done():
			w.t.Fatalf("requests without an answer:\n%s", Text(Lines(w.rec.Entries(), w.from)))
		}
	}
}

func expect(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("the client got %q, want %q", got, want)
	}
}
