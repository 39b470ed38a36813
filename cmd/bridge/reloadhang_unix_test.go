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
			must(os.Rename(hangs, aside))
			must(os.Rename(good, hangs))
			r.hangUp("the configuration was reloaded")
			freed(aside)
		})
	}
}

func TestAReloadThatHangsOnAFileDoesNotHoldUpTheEnd(t *testing.T) {
	hasty(t)
	r := startWithFile(t, "listen: 127.0.0.1:0\nupstream: http://127.0.0.1:9\n")
	must(os.Remove(r.file))
	must(syscall.Mkfifo(r.file, 0o600))
	r.hangUp("the reload takes long")
	r.stop()
	if err := r.wait(); err != nil {
		t.Error(err)
	}
	freed(r.file)
}

// hasty has reloads be slow soon.
func hasty(t *testing.T) {
	was := slowReload
	slowReload = 100 * time.Millisecond
	t.Cleanup(func() { slowReload = was })
}

// freed frees who reads a pipe.
func freed(pipe string) {
	w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	must(err)
	w.Close()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
