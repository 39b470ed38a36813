package modernonly

import (
	"errors"
	"strings"
	"testing"
)

func TestOnlyTheUntouchedValueOfTheSameCallOpens(t *testing.T) {
	k := Key("k")
	sealed, err := k.Seal("book", map[string]int{"step": 2})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]int
	if err := k.Open("book", sealed, &got); err != nil || got["step"] != 2 {
		t.Fatalf("Open = %v, %v", got, err)
	}
	for name, c := range map[string][2]string{
		"another call": {"pay", sealed},
		"changed":      {"book", "x" + sealed},
		"cut":          {"book", strings.Split(sealed, separator)[0]},
		"empty":        {"book", ""},
	} {
		if err := k.Open(c[0], c[1], &got); !errors.Is(err, ErrForged) {
			t.Errorf("%s: %v, want ErrForged", name, err)
		}
	}
	if err := Key("other").Open("book", sealed, &got); !errors.Is(err, ErrForged) {
		t.Errorf("another key: %v, want ErrForged", err)
	}
}
