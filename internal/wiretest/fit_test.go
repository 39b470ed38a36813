package wiretest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestFitChangesOnlyWhiteSpace(t *testing.T) {
	long := `"` + strings.Repeat("x", 150) + `"`
	for _, text := range []string{
		`{}`, `[]`, `"a"`, `-1.50e3`,
		`{"a":` + long + `,"b,c":[1,2,{"d":"\"}\\"}],"e":{}}`,
		`[` + long + `,` + long + `]`,
		`{"state":"a\u0026b","n":9007199254740993,"x":` + long + `}`,
	} {
		var got bytes.Buffer
		if err := json.Compact(&got, []byte(fit([]byte(text), "  "))); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got.String() != text {
			t.Errorf("got  %s\nwant %s", got.String(), text)
		}
	}
}

func TestWhatFitsStaysOnOneLine(t *testing.T) {
	if got := fit([]byte(`{"a": [1, 2]}`), ""); got != "{\"a\":[1,2]}\n" {
		t.Errorf("got %q", got)
	}
}
