package config

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// maxShown bounds how much of a wrong value a message repeats, in bytes.
const maxShown = 80

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	Where string // the file, the variable or the flag; empty when the setting is a default
	Line  int    // in the file; 0 when there is none to name
	Key   string // the setting; empty when the source as a whole is meant
	Text  string // what is wrong and what would be right; never a secret
	idle  bool   // the setting has no effect
}

func (p Problem) String() string {
	text := p.Text
	if p.Key != "" && p.Where != "--"+p.Key && p.Where != commandPlace {
		text = p.Key + ": " + text
	}
	switch {
	case p.Line > 0:
		return fmt.Sprintf("%s:%d: %s", p.Where, p.Line, text)
	case p.Where != "":
		return p.Where + ": " + text
	}
	return text
}

// Error is everything that is wrong with a configuration, at once.
type Error struct{ Problems []Problem }

func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	if len(e.Problems) > 1 {
		lines = append(lines, fmt.Sprintf("%d problems in the configuration", len(e.Problems)))
	}
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n  ")
}

// errorOf returns nil without problems, so that callers can return it as error.
func errorOf(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(a.rank(), b.rank()) })
	return &Error{Problems: problems}
}

// rank orders problems: those of the file by line, then the others as found.
func (p Problem) rank() int {
	if p.Line == 0 {
		return math.MaxInt
	}
	return p.Line
}

// shown quotes a value for a message, bounded, without what stands before an @: where somebody meant a URL that is a user's name
// and password.
func shown(value string) string {
	if i := strings.LastIndexByte(value, '@'); i > 0 {
		value = "…" + value[i:]
	}
	if len(value) > maxShown {
		value = strings.ToValidUTF8(value[:maxShown], "") + "…"
	}
	return fmt.Sprintf("%q", value)
}

// Suggest returns `; did you mean "x"?` for the candidate nearest to name, or
// nothing when none is near. What both begin with, up to a dot, does not make them nearer.
func Suggest(name string, candidates []string) string { return suggestBehind("", name, candidates) }

// suggestBehind is Suggest for names and candidates that all begin with prefix.
func suggestBehind(prefix, name string, candidates []string) string {
	best := nearest(strings.TrimPrefix(name, prefix), prefix, candidates)
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

func nearest(name, prefix string, candidates []string) (best string) {
	least := math.MaxInt
	for _, candidate := range candidates {
		a, b := apart(strings.ToLower(name), strings.ToLower(strings.TrimPrefix(candidate, prefix)))
		if d := distance(a, b); d < least && d <= max(1, len(a)/3) {
			best, least = candidate, d
		}
	}
	return best
}

// apart cuts off the sections that two keys have in common.
func apart(a, b string) (restOfA, restOfB string) {
	at := strings.LastIndexByte(a, '.') + 1
	if !strings.HasPrefix(b, a[:at]) {
		at = 0
	}
	return a[at:], b[at:]
}

// distance is the number of single-byte edits between a and b, where - and _ are
// the same letter (max_size for max-size is the commonest slip).
func distance(a, b string) int {
	fold := strings.NewReplacer("_", "-")
	a, b = fold.Replace(a), fold.Replace(b)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j]+1, row[j+1]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
