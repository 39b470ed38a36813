package record

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/observe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func event(body string) *observe.Event {
	return &observe.Event{Kind: "request", Method: "tools/call", Hop: observe.Upstream, Out: true, Body: []byte(body)}
}

func TestARecordingIsReadAsItWasTaken(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		r := New(Options{Dir: dir, Bridge: "v1"})
		if _, err := r.Open(); !errors.Is(err, ErrNone) {
			t.Error(err)
		}
		r.Take(event("{}")) // of no recording
		if err := r.Start(Filter{}); err != nil {
			t.Fatal(err)
		}
		if err := r.Start(Filter{}); !errors.Is(err, ErrRunning) {
			t.Error(err)
		}
		r.Take(event(`{"n":9007199254740993,"text":"<&>"}`))
		r.Take(&observe.Event{Kind: "end"})
		r.Stop()
		in, err := r.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(in)
		_ = in.Close()
		head, lines, err := Read(bytes.NewReader(text))
		if err != nil || head.Bridge != "v1" || len(lines) != 2 || string(lines[0].Message) != `{"n":9007199254740993,"text":"<&>"}` ||
			lines[0].Hop != Up || lines[0].Dir != Out {
			t.Errorf("%v %v %+v\n%s", err, head, lines, text)
		}
		if s := r.State(); s.On || s.Lines != 2 || s.Bytes != len(text) || s.Error != "" {
			t.Errorf("%+v of %d bytes", s, len(text))
		}
		if dir != "" {
			info, err := os.Stat(r.State().File)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v %v", info.Mode(), err)
			}
		}
	}
}

func TestADirectoryThatCannotBeWrittenIsAnError(t *testing.T) {
	r := New(Options{Dir: filepath.Join(t.TempDir(), "missing")})
	if err := r.Start(Filter{}); err == nil || r.State().On {
		t.Errorf("%v %+v", err, r.State())
	}
}

// full is a disk with no room left.
type full struct{ memory }

func (*full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestAFullDiskEndsTheRecording: with a message, and whoever records is not told to wait.
func TestAFullDiskEndsTheRecording(t *testing.T) {
	ended := make(chan error, 1)
	r := New(Options{Ended: func(_ State, why error) { ended <- why }})
	r.state.On, r.limit = true, MaxMemory
	r.out, r.wake, r.stop, r.done = &full{}, make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	go r.write(r.out, r.wake, r.stop, r.done)
	r.Take(event("{}"))
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Error(err)
	}
	r.Take(event("{}"))
	if s := r.State(); s.On || s.Error == "" {
		t.Errorf("%+v", s)
	}
	if err := r.Start(Filter{}); err != nil {
		t.Errorf("there is no recording after one that failed: %v", err)
	}
	r.Stop()
}

func TestARecordingIsBounded(t *testing.T) {
	ended := make(chan State, 1)
	r := New(Options{Ended: func(s State, _ error) { ended <- s }})
	if err := r.Start(Filter{}); err != nil {
		t.Fatal(err)
	}
	big := `"` + strings.Repeat("x", 1<<20) + `"`
	for range MaxMemory>>20 + 1 {
		r.Take(event(big))
	}
	r.Stop()
	if s := <-ended; s.Bytes > MaxMemory || s.On {
		t.Errorf("%+v", s)
	}
}

func TestWhatIsNoRecordingIsRefused(t *testing.T) {
	for text, says := range map[string]string{
		"":                 "no recording",
		`{"format":"har"}`: "no recording",
		`{"format":"` + Format + `","version":99}`:                   "version 99",
		`{"format":"` + Format + `","version":1}` + "\nnonsense\n{}": "line 2",
	} {
		if _, _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
	cut := `{"format":"` + Format + `","version":1}` + "\n" + `{"hop":"up","dir":"in","kind":"end"}` + "\n" + `{"hop":"up","di`
	if _, lines, err := Read(strings.NewReader(cut)); err != nil || len(lines) != 1 {
		t.Errorf("cut off: %v %v", lines, err)
	}
}
