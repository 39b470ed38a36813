package compat

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// member digs a raw member out of JSON text; "" when it is absent. It is this
// package's own on purpose: the bridge's code does not judge itself.
func member(text []byte, path ...string) string {
	for _, name := range path {
		var object map[string]json.RawMessage
		if json.Unmarshal(text, &object) != nil {
			return ""
		}
		text = object[name]
	}
	return string(text)
}

// same reports whether two JSON texts mean the same; numbers by their spelling.
func same(a, b string) bool {
	return reflect.DeepEqual(decode(a), decode(b)) && decode(a) != nil
}

func decode(text string) (v any) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil
	}
	if v == nil {
		return json.RawMessage("null")
	}
	return v
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if !same(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

// quote returns text as a JSON string.
func quote(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err) // strings always marshal
	}
	return string(b)
}
