package mount

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// install has processes start in another mode from now on.
func install(t *testing.T, version, mode string) {
	t.Helper()
	if err := os.WriteFile(version, []byte(mode), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A command whose next process is an older version, which is a legacy server, gets nothing of the sessions of the
// bridge: it might run it. They end, and clients that begin anew are relayed, also where each has a process and the
// one that is asked what the command is goes on in the newer version.
func TestAnOlderVersionOfACommandGetsNothingOfTheSessionsBefore_A32(t *testing.T) {
	for name, perSession := range map[string]int{"shared": 0, "a process for each session": 3} {
		t.Run(name, func(t *testing.T) {
			version := filepath.Join(t.TempDir(), "version")
			install(t, version, good)
			_, url := serve(t, process(t, installed+version, perSession))
			a, b := session(t, url), session(t, url)
			pidOf(t, url, b)
			install(t, version, parrot)
			if _, body := post(t, url, a, call("crash")); !strings.Contains(body, "exit status 3") {
				t.Fatal(body)
			}
			ctx := patience(t)
			for status := 0; status != http.StatusNotFound; {
				var body string
				if status, body = post(t, url, a, call("decided")); strings.Contains(body, "said") {
					t.Fatalf("the older version gets the call: %s", body)
				}
				if ctx.Err() != nil {
					t.Fatal("the session does not end")
				}
			}
			for range 2 {
				if id, body := initialize(t, url, "2025-06-18", `{}`); id == "" || !strings.Contains(body, "said") {
					t.Errorf("a client that begins anew gets %s", body)
				}
			}
		})
	}
}

// Where nobody's process has ended, the first client that gets one of the older version shows it, however that takes what it does not know.
func TestASessionWhoseProcessIsAnOlderVersionIsRelayed_A16(t *testing.T) {
	for _, mode := range []string{parrot, sdkLegacy, "lists", "ends"} {
		t.Run(mode, func(t *testing.T) {
			version := filepath.Join(t.TempDir(), "version")
			install(t, version, good)
			_, url := serve(t, process(t, installed+version, 3))
			a := session(t, url)
			install(t, version, mode)
			if id, body := initialize(t, url, "2025-06-18", `{}`); id == "" || strings.Contains(body, "mcp-bridge") {
				t.Errorf("it gets %s", body)
			}
			if status, body := post(t, url, a, call("pid")); status != http.StatusNotFound {
				t.Errorf("the session before gets %d %s", status, body)
			}
		})
	}
}

// One that says nothing is noticed as well, though the process of a session ends with the session that does not open, and that takes a while.
func TestAProcessThatIsASilentOlderVersionIsNoticed_E45(t *testing.T) {
	version := filepath.Join(t.TempDir(), "version")
	install(t, version, good)
	opt := process(t, installed+version, 3)
	opt.Probe.Timeout, opt.Command.Stdio.Ping = 800*time.Millisecond, time.Second // it ends before anything shows
	_, url := serve(t, opt)
	sooner(t, url)
	install(t, version, "mute")
	if _, body := sooner(t, url); !strings.Contains(body, "said") {
		t.Errorf("it gets %s", body)
	}
}

// sooner or later returns a session, and what its client is told: the processes may be slow to start on a busy machine.
func sooner(t *testing.T, url string) (id, body string) {
	t.Helper()
	for ctx := patience(t); ; {
		if id, body = initialize(t, url, "2025-06-18", `{}`); id != "" {
			return id, body
		}
		if ctx.Err() != nil {
			t.Fatalf("nobody gets a session: %s", body)
		}
	}
}

// A server of both eras that was slow serves the client that waited as one of the older era, and goes on with that.
func TestASlowServerOfBothErasKeepsItsFirstClient_A16(t *testing.T) {
	version := filepath.Join(t.TempDir(), "version")
	install(t, version, "late")
	opt := process(t, installed+version, 0)
	opt.Probe.Timeout = 4 * time.Second
	m, url := serve(t, opt)
	first, _ := sooner(t, url)
	install(t, version, sdkDual)
	for ctx := patience(t); ; {
		m.verdicts.prober.Forget()
		if v := m.Judge(t.Context()); v.Usable() {
			break
		}
		if ctx.Err() != nil {
			t.Fatal("it is never seen to be a modern one")
		}
	}
	if status, body := post(t, url, first, call("pid")); status != http.StatusOK {
		t.Errorf("the first client gets %d %s", status, body)
	}
}

// A process that refuses server/discover once, since it is not ready, is asked again.
func TestAProcessThatIsNotReadyIsAskedAgain_A32(t *testing.T) {
	for name, perSession := range map[string]int{"shared": 0, "a process for each session": 3} {
		version := filepath.Join(t.TempDir(), "version")
		install(t, version, good)
		_, url := serve(t, process(t, installed+version, perSession))
		a := session(t, url)
		pidOf(t, url, a)
		install(t, version, "unready")
		_, _ = post(t, url, a, call("crash"))
		for ctx := patience(t); ; {
			_, body := post(t, url, a, call("pid"))
			if strings.Contains(body, "pid ") {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("%s: %s", name, body)
			}
		}
	}
}
