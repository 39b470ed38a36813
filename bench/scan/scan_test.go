package scan

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestGetFindsTopLevelMembersOnly(t *testing.T) {
	text := []byte(` {"a":{"id":1,"s":"}\"{"}, "b":[1,{"id":2}] ,"id":"x\\","n":null}`)
	for name, want := range map[string]string{"id": `"x\\"`, "n": "null", "a": `{"id":1,"s":"}\"{"}`, "missing": ""} {
		if got := string(Get(text, name)); got != want {
			t.Errorf("Get(%q) = %s, want %s", name, got, want)
		}
	}
	if got := string(Path(text, "a", "id")); got != "1" {
		t.Errorf("Path = %s", got)
	}
	if n := Members(text); n != 4 {
		t.Errorf("Members = %d, want 4", n)
	}
}

// FuzzGet: arbitrary text never panics, and on valid objects the scanner
// agrees with encoding/json about the first-level members.
func FuzzGet(f *testing.F) {
	for _, s := range []string{`{"id":1}`, `{"a":"\"","id":[{}]}`, `{`, `{"id"`, `{"id":`, `{"id":"`, `[]`, `{"a":1,}`, "{\"\\", ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got := Get(b, "id")
		n := Members(b)
		var m map[string]json.RawMessage
		if json.Unmarshal(b, &m) != nil || m == nil || bytes.ContainsAny(b, "\\") {
			return
		}
		if (m["id"] != nil) != (got != nil) || n < len(m) {
			t.Fatalf("%q: got %q of %d members, encoding/json has %q of %d", b, got, n, m["id"], len(m))
		}
	})
}
