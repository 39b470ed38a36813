//go:build linux

package proc_test

import (
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/mcpbridge/bridge/bench/proc"
)

// TestMain is also the child of the tests: it listens and burns some CPU.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "child" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			os.Exit(1)
		}
		_ = proc.Announce(os.Stdout, l.Addr().String(), "", "")
		for {
			nc, err := l.Accept()
			if err != nil {
				os.Exit(1)
			}
			sum := 0
			for i := range 50_000_000 {
				sum += i & sum
			}
			fmt.Fprintln(nc, sum)
			_ = nc.Close()
		}
	}
	os.Exit(m.Run())
}

func TestAProcessIsStartedSampledAndStopped(t *testing.T) {
	self, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	p, err := proc.Start("child", self, "child")
	if err != nil {
		t.Fatal(err)
	}
	before, err := proc.CPU(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	nc, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = nc.Read(make([]byte, 1))
	_ = nc.Close()
	after, err := proc.CPU(p.PID())
	if err != nil || after <= before {
		t.Errorf("CPU %s then %s, %v", before, after, err)
	}
	if rss, err := proc.RSS(p.PID()); err != nil || rss < 1<<20 {
		t.Errorf("RSS %d, %v", rss, err)
	}
	if n, err := proc.FDs(p.PID()); err != nil || n < 3 {
		t.Errorf("%d descriptors, %v", n, err)
	}
	p.Stop()
	if p.Alive() {
		t.Error("alive after Stop")
	}
}

func TestAProcessThatDoesNotStartIsAnError(t *testing.T) {
	if p, err := proc.Start("false", "/bin/false"); err == nil {
		p.Stop()
		t.Error("no error")
	}
	if p, err := proc.StartAt("false", "127.0.0.1:1", nil, "/bin/false"); err == nil {
		p.Stop()
		t.Error("no error")
	}
}

func TestTheMachineIsSampled(t *testing.T) {
	busy, _, err := proc.Busy()
	if err != nil || busy <= 0 {
		t.Errorf("%s, %v", busy, err)
	}
	if n, err := proc.DescriptorLimit(); err != nil || n == 0 {
		t.Errorf("%d, %v", n, err)
	}
}
