//go:build unix

package edge

import (
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
)

// fewDescriptors lets this process have only so many files open during a test.
func fewDescriptors(t *testing.T, n uint64) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	few := before
	few.Cur = n
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before) })
}

// occupy opens files until the next descriptor would be n.
func occupy(t *testing.T, n int) {
	t.Helper()
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		if int(f.Fd()) >= n-1 {
			return
		}
	}
}

func TestNewcomersToAFullTableAreAnsweredAndHealthProbesServed(t *testing.T) {
	fewDescriptors(t, 256)
	e, log := serve(t, from, Options{})
	before := dial(t, e)
	defer before.Close()
	if got := get(before, "/mcp"); got != "HTTP/1.1 200 OK" {
		t.Fatalf("while there is room: %q", got)
	}
	occupy(t, 128)
	for path, want := range map[string]string{"/mcp": "HTTP/1.1 503 Service Unavailable", "/healthz": "HTTP/1.1 200 OK", "/readyz": "HTTP/1.1 200 OK"} {
		conn := dial(t, e)
		defer conn.Close()
		if got := get(conn, path); got != want {
			t.Errorf("a newcomer that asks for %s gets %q, want %q", path, got, want)
		}
	}
	if got := get(before, "/mcp"); got != "HTTP/1.1 200 OK" {
		t.Errorf("who came before gets %q", got)
	}
	log.expect(t, "newcomers are answered 503")
	if n := strings.Count(log.String(), `"level":"warn"`); n != 1 {
		t.Errorf("%d warnings:\n%s", n, log)
	}
}

func TestNobodyIsToldWhenThatWouldTakeTheLastDescriptors(t *testing.T) {
	fewDescriptors(t, 256)
	e, _ := serve(t, from, Options{})
	occupy(t, 220)
	conn := dial(t, e)
	defer conn.Close()
	if got := get(conn, "/healthz"); got != "" {
		t.Errorf("got %q", got)
	}
}

// broken is a socket that cannot accept.
type broken struct {
	net.Listener
	errs chan error
}

func (b *broken) Accept() (net.Conn, error) { return nil, <-b.errs }

func TestConnectionsThatCannotBeAcceptedAreWarnedAbout(t *testing.T) {
	log := newDiary()
	socket := &broken{&waiting{}, make(chan error, 3)}
	c := newCrowd(socket, nil, func(l net.Listener) net.Listener { return l }, http.NotFoundHandler(), logTo(log))
	defer c.end()
	for range 3 {
		socket.errs <- syscall.EMFILE
		if _, err := c.Accept(); err != syscall.EMFILE {
			t.Errorf("got %v", err)
		}
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `"level":"warn"`) || !strings.Contains(text, "too many open files") {
		t.Errorf("the log says\n%s", text)
	}
}
