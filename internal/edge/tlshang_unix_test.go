//go:build unix

package edge

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/internal/smallfile"
	"github.com/mcpbridge/bridge/internal/testcert"
)

// A pipe stands for a file whose server is gone. While one of the files hangs, handshakes have the certificate that was read before, and as soon as a good file
// stands there, that is taken: nobody waits for whoever hangs.
func TestHandshakesDoNotWaitForACertificateFileThatHangs(t *testing.T) {
	for _, which := range []string{"c.pem", "k.pem"} {
		t.Run(which, func(t *testing.T) {
			dir := t.TempDir()
			cert, key, _ := testcert.Write(t, dir, 1)
			log := newDiary()
			r, err := newReloader(Files{cert, key}, logTo(log))
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, which)
			if err := errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o600)); err != nil {
				t.Fatal(err)
			}
			hanging := r.look()
			var pipe *os.File // who reads it hangs until it is closed
			for until := time.Now().Add(patience); pipe == nil && time.Now().Before(until); {
				pipe, _ = os.OpenFile(file, os.O_WRONLY|syscall.O_NONBLOCK, 0)
			}
			for range 2 * smallfile.MaxHanging {
				<-r.look() // which leaves a file alone that hangs already
			}
			expectSerial(t, r, "while it hangs", 1)
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			testcert.Write(t, dir, 2)
			<-r.look()
			expectSerial(t, r, "good files again", 2)
			select {
			case <-hanging:
				t.Error("nothing hung")
			default:
			}
			pipe.Close()
			<-hanging
			expectSerial(t, r, "who hung has read an old file", 2)
		})
	}
}

func expectSerial(t *testing.T, r *reloader, what string, serial int64) {
	t.Helper()
	leaf, err := x509.ParseCertificate(r.certificate().Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if leaf.SerialNumber.Int64() != serial {
		t.Errorf("%s: certificate %d is served, want %d", what, leaf.SerialNumber, serial)
	}
}

// A look that hangs before it has seen what it reads, as on a mount that is gone, is followed by a few more, not by
// one more every 10 s; and what it finds in the end does not count when a later one has found something.
func TestLooksThatHangAreFewAndSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newDiary()
		r := &reloader{log: logTo(log), stop: make(chan struct{}), now: &loaded{pair: &tls.Certificate{}}, looks: map[int]*look{}}
		for i := range smallfile.MaxHanging {
			r.looks[i] = &look{began: time.Now()}
		}
		r.watch()
		time.Sleep(10 * reloadEvery)
		synctest.Wait()
		r.close()
		if r.count != 0 {
			t.Errorf("%d more looks began", r.count)
		}
		if got := log.String(); strings.Count(got, "hangs") != 1 {
			t.Errorf("the log says %s", got)
		}
	})
}

func TestALookThatBeganBeforeAReloadDoesNotCount(t *testing.T) {
	dir := t.TempDir()
	cert, key, _ := testcert.Write(t, dir, 1)
	r, err := newReloader(Files{cert, key}, logTo(newDiary()))
	if err != nil {
		t.Fatal(err)
	}
	r.count++
	r.looks[1] = &look{}
	other, otherKey, _ := testcert.Write(t, t.TempDir(), 2)
	found, err := load(Files{other, otherKey})
	if err != nil {
		t.Fatal(err)
	}
	r.replace(found)
	r.see(1, Files{cert, key})
	expectSerial(t, r, "the reload's", 2)
}
