//go:build unix

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/testcert"
)

// A pipe stands for a file whose server is gone. A reload that hangs on it holds up neither clients nor the
// next reload.
func TestAReloadThatHangsOnAFileHoldsUpNothing(t *testing.T) {
	hasty(t)
	upstream := httptest.NewServer(http.NotFoundHandler())
	defer upstream.Close()
	for _, which := range []string{"bridge.yaml", "c.pem", "k.pem", "ca.pem"} {
		t.Run(which, func(t *testing.T) {
			dir, other := t.TempDir(), t.TempDir()
			cert, key, _ := testcert.Write(t, dir, 1)
			ca, _, _ := testcert.Write(t, other, 1)
			authority := filepath.Join(other, "ca.pem")
			must(os.Rename(ca, authority))
			r := startWithFile(t, "listen: 127.0.0.1:0\ntls: {cert: '"+cert+"', key: '"+key+"'}\nupstream: '"+upstream.URL+"'\nupstream-tls: {ca: '"+authority+"'}\n")
			hangs := map[string]string{"bridge.yaml": r.file, "c.pem": cert, "k.pem": key, "ca.pem": authority}[which]
			good, aside := hangs+".good", filepath.Join(dir, "pipe")
			must(os.Rename(hangs, good))
			must(syscall.Mkfifo(hangs, 0o600))
			r.hangUp("the reload takes long")
			if got := servedSerial(t, r.address); got != 1 {
				t.Errorf("certificate %d is served", got)
			}
			w := held(t, hangs)
			must(os.Rename(hangs, aside))
			must(os.Rename(good, hangs))
			r.hangUp("the configuration was reloaded")
			w.Close()
		})
	}
}

func TestAReloadThatHangsOnAFileDoesNotHoldUpTheEnd(t *testing.T) {
	hasty(t)
	r := startWithFile(t, "listen: 127.0.0.1:0\nupstream: http://127.0.0.1:9\n")
	must(os.Remove(r.file))
	must(syscall.Mkfifo(r.file, 0o600))
	r.hangUp("the reload takes long")
	w := held(t, r.file)
	must(os.Remove(r.file))
	r.stop()
	if err := r.wait(); err != nil {
		t.Error(err)
	}
	w.Close()
}

// hasty has reloads be slow soon.
func hasty(t *testing.T) {
	was := slowReload
	slowReload = 100 * time.Millisecond
	t.Cleanup(func() { slowReload = was })
}

// held waits until somebody reads a pipe, who hangs until what is returned is closed.
func held(t *testing.T, pipe string) *os.File {
	t.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); {
		if w, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			return w
		}
	}
	t.Fatal("nobody reads the pipe")
	return nil
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
