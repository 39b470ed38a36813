package archtest

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	transports = regexp.MustCompile(`http\.Transport\{|http\.DefaultTransport\b`)
	bounded    = regexp.MustCompile(`\bMaxResponseHeaderBytes\b`)
	unbounded  = regexp.MustCompile(`http\.DefaultClient\b|http\.(Get|Head|Post|PostForm)\(|http\.Client\{\}`)
)

// TestHeadsOfResponsesAreBounded holds that every client of net/http says how long the head of
// a response may be: by itself it takes 10 MiB, of which nobody is charged a byte. The
// demonstration's asks the bridge of its own process.
func TestHeadsOfResponsesAreBounded(t *testing.T) {
	for _, file := range files(t, ".go") {
		room := path.Dir(file)
		if strings.HasSuffix(file, "_test.go") || withinAny(room, beside) || withinAny(room, []string{"internal/demo", "internal/peers"}) {
			continue
		}
		text := comment.ReplaceAllString(read(t, file), "")
		if len(transports.FindAllString(text, -1)) > len(bounded.FindAllString(text, -1)) {
			t.Errorf("%s: an http.Transport without MaxResponseHeaderBytes", file)
		}
		if strings.Contains(text, "http.Client{") && !strings.Contains(text, "Transport") {
			t.Errorf("%s: an http.Client with the transport of everybody", file)
		}
		if found := unbounded.FindString(text); found != "" {
			t.Errorf("%s: %s reads heads of any length", file, found)
		}
	}
}
