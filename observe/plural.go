package observe

import "fmt"

// Plural counts things for people: 1 session, 2 sessions. many is the word for several where
// an s at the end does not make it.
func Plural(n int, word string, many ...string) string {
	switch {
	case n == 1:
		return "1 " + word
	case len(many) > 0:
		return fmt.Sprint(n, " ", many[0])
	}
	return fmt.Sprint(n, " ", word, "s")
}
