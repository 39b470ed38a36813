package compat

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// Texts of JSON in every spelling that is legal: white space, escapes, numbers
// and nesting vary. Member names begin with x and are unique, so that no rule
// knows them.

var (
	space  = rapid.SampledFrom([]string{"", "", "", "", " ", "\n", "\t ", "\r\n  "})
	number = rapid.SampledFrom([]string{"0", "-0", "1", "9007199254740993", "-12345678901234567890", "1.0", "1.50", "1e2", "1E+400", "0.1e-9"})
	glyph  = rapid.SampledFrom([]string{"a", "Z", " ", "é", "日", "😀", `\n`, `\"`, `\\`, `\/`, `\u0041`, `\u2028`, "\u2028", `\ud800`, `\ud83d\ude00`, "<&>", "\u007f", "'"})
	word   = rapid.Custom(func(t *rapid.T) string {
		return `"` + strings.Join(rapid.SliceOfN(glyph, 0, 6).Draw(t, "glyphs"), "") + `"`
	})
)

// anything generates a JSON text.
func anything(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		kinds := 4
		if depth > 0 {
			kinds = 6
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return number.Draw(t, "number")
		case 1, 2:
			return word.Draw(t, "word")
		case 3:
			return rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "literal")
		case 4:
			var b strings.Builder
			b.WriteString("[" + space.Draw(t, "space"))
			for n := range rapid.IntRange(0, 3).Draw(t, "elements") {
				if n > 0 {
					b.WriteString("," + space.Draw(t, "space"))
				}
				b.WriteString(anything(depth-1).Draw(t, "element") + space.Draw(t, "space"))
			}
			return b.String() + "]"
		}
		return object(t, depth-1, nil)
	})
}

// object generates an object of strange members with the given ones, which are
// whole texts of members, somewhere between them.
func object(t *rapid.T, depth int, given []string) string {
	members := append([]string(nil), given...)
	for n := range rapid.IntRange(0, 3).Draw(t, "members") {
		name := fmt.Sprintf(`"x%s%d"`, rapid.SampledFrom([]string{"", "é", `\u0041`, "_"}).Draw(t, "name"), n)
		members = append(members, name+space.Draw(t, "space")+":"+space.Draw(t, "space")+anything(depth).Draw(t, "value"))
	}
	members = rapid.Permutation(members).Draw(t, "order")
	var b strings.Builder
	b.WriteString("{" + space.Draw(t, "space"))
	for n, m := range members {
		if n > 0 {
			b.WriteString(space.Draw(t, "space") + "," + space.Draw(t, "space"))
		}
		b.WriteString(m)
	}
	return b.String() + space.Draw(t, "space") + "}"
}

// some draws a part of the given texts.
func some(t *rapid.T, label string, of ...string) []string {
	var chosen []string
	for _, text := range of {
		if rapid.Bool().Draw(t, label) {
			chosen = append(chosen, text)
		}
	}
	return chosen
}
