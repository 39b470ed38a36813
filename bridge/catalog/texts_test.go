package catalog

import (
	"strconv"
	"strings"
	"testing"
)

func TestEqualTextsAreShared(t *testing.T) {
	var shared texts
	said := []byte(`{"name":"a"}`)
	first, second := shared.share(said), shared.share([]byte(`{"name":"a"}`))
	if &first[0] != &second[0] || &first[0] == &said[0] {
		t.Error("equal texts are not one copy")
	}
	if other := shared.share([]byte(`{"name":"b"}`)); string(other) != `{"name":"b"}` {
		t.Errorf("got %s", other)
	}
	if got := shared.share(nil); got != nil {
		t.Errorf("nothing became %q", got)
	}
}

func TestSharedTextsAreBounded(t *testing.T) {
	var shared texts
	for i := range 3 * maxTexts {
		if text := strconv.Itoa(i); string(shared.share([]byte(text))) != text || len(shared.known) > maxTexts {
			t.Fatalf("%d texts are known after %s", len(shared.known), text)
		}
	}
	for i := range 100 {
		shared.share([]byte(strconv.Itoa(i) + strings.Repeat("x", maxTextSize-2)))
		if shared.bytes > maxTextBytes {
			t.Fatalf("%d bytes are known", shared.bytes)
		}
	}
	if long := strings.Repeat("x", maxTextSize+1); string(shared.share([]byte(long))) != long || shared.known[long] != nil {
		t.Error("a long text is known")
	}
}
