package authorize

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/peers/issuer"
)

// inSession runs a process in a desktop session of its own: with the Secret Service of
// GNOME, unlocked or locked, or without one. What is in the keyring is below HOME.
const inSession = `
case $1 in
unlocked|locked) printf 'only a test' | gnome-keyring-daemon --unlock --components=secrets >/dev/null || exit 70 ;;
esac
if [ "$1" = locked ]; then
  gdbus call --session --dest org.freedesktop.secrets --object-path /org/freedesktop/secrets \
    --method org.freedesktop.Secret.Service.Lock "[objectpath '/org/freedesktop/secrets/collection/login']" >/dev/null || exit 71
fi
state=$1
shift
"$@" >"$HOME/out" 2>"$HOME/log"
status=$?
if [ "$state" != none ]; then # the daemon may outlive its session, also one that the bus has started
  pid=$(gdbus call --session --dest org.freedesktop.DBus --object-path /org/freedesktop/DBus \
    --method org.freedesktop.DBus.GetConnectionUnixProcessID org.freedesktop.secrets 2>/dev/null | sed 's/.*uint32 \([0-9]*\).*/\1/')
  [ -n "$pid" ] && kill "$pid"
fi
exit $status
`

// desktop is a person's machine with a real keyring.
type desktop struct {
	home string
	orders
}

func newDesktop(t *testing.T, i *issuer.Issuer) *desktop {
	t.Helper()
	for _, program := range []string{"dbus-run-session", "gnome-keyring-daemon", "gdbus"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s: `.ci/run signin` installs it", program)
		}
	}
	return &desktop{home: t.TempDir(), orders: orders{
		Server: i.Endpoint(), Dir: t.TempDir(), Store: "auto", Browser: agreeing(), Refused: Refusal{Status: http.StatusUnauthorized}, Wait: patience,
	}}
}

// run runs a bridge's part of the sign-in, with the keyring in a state, and returns the
// header that it would send and what it said.
func (d *desktop) run(t *testing.T, state string) (header, said string) {
	t.Helper()
	text, err := json.Marshal(d.orders)
	if err != nil {
		t.Fatal(err)
	}
	// What it says goes into files: a daemon of the session may outlive it, and hold pipes open.
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	args := []string{"-c", inSession, "sh", state, os.Args[0], "process", string(text)}
	cmd := exec.CommandContext(ctx, "dbus-run-session", append([]string{"--", "sh"}, args...)...)
	if state == "none" { // not even a session bus
		cmd = exec.CommandContext(ctx, "sh", args...)
	}
	for _, v := range os.Environ() {
		switch name, _, _ := strings.Cut(v, "="); name {
		case "HOME", "DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CACHE_HOME":
		default:
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "HOME="+d.home, "XDG_RUNTIME_DIR="+d.home)
	if err := cmd.Run(); err != nil && (ctx.Err() != nil || cmd.ProcessState.ExitCode() >= 70) {
		t.Fatalf("the session did not begin, or did not end: %v", err)
	}
	out, err := os.ReadFile(filepath.Join(d.home, "out"))
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(d.home, "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("with the keyring %s:\n%s", state, log)
	return strings.TrimSpace(string(out)), string(log)
}

func (d *desktop) logins(t *testing.T) []Entry {
	t.Helper()
	list, err := List(d.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// With a keyring the secrets are sealed by its key. Locked again, with nobody there to
// unlock it, the login is neither lost nor replaced: the message says what to do.
func TestARealKeyring(t *testing.T) {
	i := issuer.New(t)
	d := newDesktop(t, i)
	header, _ := d.run(t, "unlocked")
	list := d.logins(t)
	if header == "" || len(list) != 1 || !list[0].Sealed {
		t.Fatalf("signed in: %v; kept %+v", header != "", list)
	}
	d.Ask = 1 // for the header of the login that is kept
	if again, _ := d.run(t, "unlocked"); again != header {
		t.Error("after a restart it is not the same login")
	}
	d.Ask = 0
	for _, state := range []string{"locked", "none"} {
		if header, said := d.run(t, state); header != "" || !strings.Contains(said, "Unlock the keyring, or run `bridge logout "+i.Endpoint()+"` and sign in again") {
			t.Errorf("with the keyring %s: header %v, said %s", state, header != "", said)
		}
	}
	if i.Get(&i.Tabs) != 1 || len(d.logins(t)) != 1 {
		t.Errorf("%d tabs; kept %+v", i.Tabs, d.logins(t))
	}
}

// Who never had a keyring that can be used is served from files, and told so once. Where
// the keyring is demanded, the sign-in ends before it begins.
func TestNoKeyringThatCanBeUsed(t *testing.T) {
	for _, state := range []string{"locked", "none"} {
		t.Run(state, func(t *testing.T) {
			i := issuer.New(t)
			d := newDesktop(t, i)
			d.run(t, "unlocked-for-nobody") // a session without a keyring, so that there is no key of the bridge
			if tabs := i.Get(&i.Tabs); tabs != 1 || len(d.logins(t)) != 1 || d.logins(t)[0].Sealed {
				t.Fatalf("%d tabs; kept %+v", tabs, d.logins(t))
			}
			d.Dir = t.TempDir()
			header, said := d.run(t, state)
			if header == "" || d.logins(t)[0].Sealed || strings.Count(said, "no keyring can be used: logins are kept in files that only you can read") != 1 {
				t.Errorf("signed in: %v; said %s", header != "", said)
			}
			d.Dir, d.Store = t.TempDir(), "keyring"
			if header, said := d.run(t, state); header != "" || !strings.Contains(said, "the keyring cannot be used") || !strings.Contains(said, "unlock it, or set auth.store to file") {
				t.Errorf("where the keyring is demanded: header %v, said %s", header != "", said)
			}
			if i.Get(&i.Tabs) != 2 {
				t.Errorf("%d tabs", i.Tabs)
			}
		})
	}
}
