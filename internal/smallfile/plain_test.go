package smallfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Files of Windows are read, or their encoding is named: the mark before a token would be part of it.
func TestTextsOfWindows(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	for _, test := range []struct {
		holds, want string
		err         error
	}{
		{"\xef\xbb\xbftoken\r\n", "token\r\n", nil},
		{"token", "token", nil},
		{"\xff\xfet\x00", "", ErrUTF16},
		{"\xfe\xff\x00t", "", ErrUTF16},
	} {
		if err := os.WriteFile(file, []byte(test.holds), 0o600); err != nil {
			t.Fatal(err)
		}
		if text, err := Secret(file); string(text) != test.want || !errors.Is(err, test.err) {
			t.Errorf("%q: %q, %v", test.holds, text, err)
		}
	}
}
