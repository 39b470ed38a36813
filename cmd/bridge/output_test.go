package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/config"
)

// deaf is a reader of the log that does not read until it is woken.
type deaf struct {
	awake chan struct{}
	mu    sync.Mutex
	read  bytes.Buffer
}

func (d *deaf) Write(line []byte) (int, error) {
	<-d.awake
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.read.Write(line)
}

func (d *deaf) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.read.String()
}

// Every request waited with a line of the log, for as long as nobody read that.
func TestAnUnreadLogHoldsNobodyUp(t *testing.T) {
	for name, size := range map[string]int{"many lines": 10, "long lines": 10 << 10} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &deaf{awake: make(chan struct{})}
				o := newOutput(d)
				defer close(o.lines)
				newLogger(o, config.Log{Level: "info", Format: "json"}, nil)
				const lines = mostLines + 1000
				for i := range lines {
					fmt.Fprintf(o, "%d %s\n", i, strings.Repeat("x", size))
				}
				if held := o.held.Load(); held > mostHeld {
					t.Errorf("%d bytes wait", held)
				}
				began := time.Now()
				o.flush()
				if took := time.Since(began); took != lastLines {
					t.Errorf("the end took %v", took)
				}
				close(d.awake)
				o.flush()
				o.flush()
				synctest.Wait()
				got := d.text()
				var kept, lost int
				for line := range strings.Lines(got) {
					if strings.Contains(line, "lines were left out") {
						_, after, _ := strings.Cut(line, `"lines":`)
						var n int
						_, _ = fmt.Sscan(after, &n)
						lost += n
						continue
					}
					if !strings.HasPrefix(line, fmt.Sprint(kept, " ")) {
						t.Fatalf("line %d is %.20s", kept, line)
					}
					kept++
				}
				if kept+lost != lines || lost == 0 {
					t.Errorf("%d lines were kept and %d lost, of %d", kept, lost, lines)
				}
				if left := o.held.Load(); left != 0 {
					t.Errorf("%d bytes wait for good", left)
				}
			})
		})
	}
}

func TestALogThatIsReadIsWhole(t *testing.T) {
	read, write := io.Pipe()
	o := newOutput(write)
	said := make(chan string)
	go func() {
		text, _ := io.ReadAll(read)
		said <- string(text)
	}()
	var want strings.Builder
	for i := range 100 {
		fmt.Fprintf(o, "line %d\n", i)
		fmt.Fprintf(&want, "line %d\n", i)
	}
	o.flush()
	_ = write.Close()
	close(o.lines)
	if got := <-said; got != want.String() {
		t.Errorf("read is\n%s", got)
	}
}
