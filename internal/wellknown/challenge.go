package wellknown

import "strings"

// Parameter finds the value of a parameter in challenges (RFC 9110, 11.6.1), with its
// quotes. What is quoted is no parameter.
func Parameter(text, name string) (from, to int, found bool) {
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			i = quoteEnd(text, i)
		case isTokenByte(c):
			end := tokenEnd(text, i)
			equals := end + leadingSpace(text[end:])
			if strings.EqualFold(text[i:end], name) && equals < len(text) && text[equals] == '=' {
				from = equals + 1 + leadingSpace(text[equals+1:])
				return from, valueEnd(text, from), true
			}
			i = end
		default:
			i++
		}
	}
	return 0, 0, false
}

// Value returns a parameter of challenges without its quotes, "" when it is not there.
func Value(challenges []string, name string) string {
	for _, text := range challenges {
		if from, to, found := Parameter(text, name); found {
			return strings.ReplaceAll(strings.Trim(text[from:to], `"`), `\`, "")
		}
	}
	return ""
}

func leadingSpace(text string) int { return len(text) - len(strings.TrimLeft(text, " \t")) }

// valueEnd is where a token or quoted string ends.
func valueEnd(text string, from int) int {
	if from < len(text) && text[from] == '"' {
		return quoteEnd(text, from)
	}
	return from + len(text[from:]) - len(strings.TrimLeft(text[from:], unquoted))
}

// unquoted are the bytes of values that stand without quotes; some servers write
// URLs so.
const unquoted = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~:/?@[]()=;"

// quoteEnd is behind the quote that ends the quoted string which begins at from.
func quoteEnd(text string, from int) int {
	for i := from + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

func tokenEnd(text string, from int) int {
	for from < len(text) && isTokenByte(text[from]) {
		from++
	}
	return from
}

func isTokenByte(c byte) bool {
	return c > ' ' && c < 0x7f && !strings.ContainsRune(`"(),/:;<=>?@[\]{}`, rune(c))
}
