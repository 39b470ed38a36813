package demo

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/bridge/internal/testbridge"
)

var update = flag.Bool("update", false, "write the golden screens instead of comparing")

func realBridge(_ context.Context, upstream string, observe func(http.Handler) http.Handler) (Bridge, error) {
	url, stop, err := testbridge.Start(upstream, observe)
	return Bridge{URL: url, Stop: stop}, err
}

// show runs the demo once and returns the screen.
func show(t *testing.T, opts Options) string {
	t.Helper()
	var out strings.Builder
	opts.Out, opts.Once, opts.Start = &out, true, realBridge
	if err := Run(t.Context(), opts); err != nil {
		t.Fatalf("Run: %v\n%s", err, out.String())
	}
	return out.String()
}

func columns(n int) func() int { return func() int { return n } }

var timing = regexp.MustCompile(`[0-9.]+(µs|ms|s)\b`)

// still removes what differs between runs: times, keeping their width in the
// gutter.
func still(screen string) string {
	return timing.ReplaceAllStringFunc(screen, func(s string) string {
		if strings.HasSuffix(s, "s") && len(s) == len("0.000s") && !strings.HasSuffix(s, "ms") {
			return "-.---s"
		}
		return "(time)"
	})
}

func TestTheScreen(t *testing.T) {
	for name, width := range map[string]int{"stacked at 80": 80, "two columns at 120": 120} {
		t.Run(name, func(t *testing.T) {
			got := still(show(t, Options{Width: columns(width)}))
			for i, l := range strings.Split(got, "\n") {
				if n := len([]rune(l)); n > width {
					t.Errorf("line %d is %d columns wide: %s", i+1, n, l)
				}
			}
			if strings.Contains(got, "\x1b") {
				t.Error("colours without a terminal")
			}
			path := filepath.Join("testdata", strings.ReplaceAll(name, " ", "_")+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			// The last paragraph is set around times of any length.
			cut := func(s string) string { head, _, _ := strings.Cut(s, "All the bridge's work"); return head }
			if cut(got) != cut(string(want)) {
				t.Errorf("the screen differs from %s:\n%s", path, got)
			}
		})
	}
}

func TestRequestStateIsNeverShown(t *testing.T) {
	var recorded []string
	var mu sync.Mutex
	var out strings.Builder
	err := Run(t.Context(), Options{Out: &out, Once: true, Start: func(ctx context.Context, upstream string, observe func(http.Handler) http.Handler) (Bridge, error) {
		return realBridge(ctx, upstream, func(h http.Handler) http.Handler {
			return observe(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				recorded = append(recorded, r.Method)
				mu.Unlock()
				h.ServeHTTP(w, r)
			}))
		})
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(recorded) < 4 {
		t.Errorf("the client sent only %v through the observed handler", recorded)
	}
	if !strings.Contains(out.String(), "•••• ") || strings.Contains(out.String(), "eyJ") {
		t.Errorf("D-I5: request state on the screen:\n%s", out.String())
	}
}

func TestAPersonAnswers(t *testing.T) {
	screen := show(t, Options{Interactive: true, Color: true, In: strings.NewReader("3\n2\n0\ny\nleft over\n"), Width: columns(120)})
	for _, want := range []string{"Ada Lovelace to Tokyo, aisle", "You took ", "\x1b["} {
		if !strings.Contains(screen, want) {
			t.Errorf("the screen lacks %q:\n%s", want, screen)
		}
	}
}

func TestDecliningAndTheEndOfInputBookNothing(t *testing.T) {
	for name, in := range map[string]string{"decline": "d\n", "cancel": "1\nc\n", "end of input": "", "not confirmed": "1\n\n\nn\n"} {
		if screen := show(t, Options{Interactive: true, In: strings.NewReader(in)}); !strings.Contains(screen, "Nothing was booked") {
			t.Errorf("%s:\n%s", name, screen)
		}
	}
}

// watched is an output that tells when a text was written.
type watched struct {
	mu   sync.Mutex
	text strings.Builder
	want string
	seen chan struct{}
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := strings.Contains(w.text.String(), w.want)
	n, err := w.text.Write(p)
	if !before && strings.Contains(w.text.String(), w.want) {
		close(w.seen)
	}
	return n, err
}

func TestItStaysUpUntilItsContextEnds(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	out := &watched{want: "Ctrl-C ends the demo", seen: make(chan struct{})}
	done := make(chan error)
	go func() { done <- Run(ctx, Options{Out: out, Start: realBridge}) }()
	<-out.seen
	stop()
	if err := <-done; err != nil {
		t.Errorf("ended by its context: %v", err)
	}
}

func TestCtrlCAtAQuestionEndsTheDemo(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	out := &watched{want: "Destination (", seen: make(chan struct{})}
	in, keyboard, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- Run(ctx, Options{In: in, Out: out, Interactive: true, Start: realBridge}) }()
	<-out.seen
	stop()
	if err := <-done; err != nil {
		t.Errorf("ended by its context: %v", err)
	}
	_ = keyboard.Close()
	_ = in.Close()
	if screen := out.text.String(); !strings.HasSuffix(screen, "Enter = 1): \n Stopped.\n") {
		t.Errorf("messages followed the end:\n%s", screen)
	}
}

func TestABridgeThatDoesNotStartIsReported(t *testing.T) {
	broken := errors.New("no port left")
	err := Run(t.Context(), Options{Out: new(strings.Builder), Once: true, Start: func(context.Context, string, func(http.Handler) http.Handler) (Bridge, error) {
		return Bridge{}, broken
	}})
	if !errors.Is(err, broken) {
		t.Errorf("err = %v", err)
	}
}
