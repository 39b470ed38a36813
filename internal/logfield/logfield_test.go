package logfield

import "testing"

func TestShortKeepsEightBytes(t *testing.T) {
	for id, want := range map[string]string{"": "", "abc": "abc", "0123456789abcdef": "01234567"} {
		if got := Short(id); got != want {
			t.Errorf("Short(%q) = %q, want %q", id, got, want)
		}
	}
}
