package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml"
)

// syntax reports that a file is no YAML. What the parser says of indentation is true of its tokens, and leads nobody to
// the line that is to blame: of that we say it ourselves.
func (l *loader) syntax(path string, data []byte, err error) {
	if much, ok := errors.AsType[excess](err); ok {
		l.fail(origin{where: path}, "", much.Error())
		return
	}
	var detail yaml.Error
	if !errors.As(err, &detail) {
		l.fail(origin{where: path}, "", "is no YAML: "+shown(err.Error()))
		return
	}
	at, text := position(path, detail.GetToken()), visible(detail.GetMessage())
	if line, why := misplaced(strings.Split(string(data), "\n"), at.line, text); why != "" {
		at.line, text = line, why
	}
	l.fail(at, "", "is no YAML: "+text)
}

// visible is a text without the control characters in it, which a terminal would obey or nobody see.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// How the parser speaks of indentation: of what begins in a line or goes on from there in the next one, and of tabs.
const outOfPlace = "is not allowed in this context"

var ofTabs = regexp.MustCompile(outOfPlace + "|cannot start any token|tab character")

// misplaced returns the line, counted from 1, whose indentation is why the parser reports one, and what is wrong
// with it; "" where that is not why.
func misplaced(lines []string, reported int, message string) (line int, why string) {
	suspects := []int{reported}
	if strings.Contains(message, outOfPlace) {
		suspects = append(suspects, following(lines, reported))
	}
	for _, line := range suspects {
		if line < 1 || line > len(lines) {
			continue
		}
		text := lines[line-1]
		if depth := indent(text); strings.Contains(text[:depth], "\t") && ofTabs.MatchString(message) {
			return line, "the line begins with a tab; YAML takes only spaces for indentation"
		} else if strings.Contains(message, outOfPlace) && !fits(lines[:line-1], depth) {
			return line, fmt.Sprintf("the line begins with %d spaces, which fits none of the lines above it", depth)
		}
	}
	return 0, ""
}

// following returns the next line after one that says something.
func following(lines []string, line int) int {
	for line++; line <= len(lines) && says(lines[line-1]) == ""; line++ {
	}
	return line
}

// says is a line without what is around it, and without a comment.
func says(line string) string {
	text, _, _ := strings.Cut(" "+strings.TrimSpace(line), " #")
	return strings.TrimSpace(text)
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// opens matches a line below which others stand deeper.
var opens = regexp.MustCompile(`(:|-|[|>][-+0-9]*)$`)

// fits reports whether a line that is so deep goes on with the keys or entries of a line above it, or begins those of
// the last one.
func fits(above []string, depth int) bool {
	for last, first := len(above)-1, true; last >= 0; last-- {
		text := says(above[last])
		if text == "" {
			continue
		}
		at := indent(above[last])
		key := at + len(text) - len(strings.TrimLeft(text, "- ")) // within "- key: value"
		switch {
		case at == depth || key == depth:
			return true
		case at < depth:
			return first && opens.MatchString(text)
		}
		first = false
	}
	return depth == 0
}
