package form

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcpbridge/bridge/rawjson"
)

// Problems says for each field by its name what is wrong with its value, in words
// for the person who typed it. It never holds the value.
type Problems map[string]string

// Answer turns what a browser submitted into the content of an accepted
// elicitation, as a JSON object. It returns the problems instead when a value
// breaks a rule of the schema: only what the schema allows reaches the server.
func (f Form) Answer(submitted url.Values) ([]byte, Problems) {
	problems := Problems{}
	content := []byte{'{'}
	for i := range f.Fields {
		field := &f.Fields[i]
		value, problem := field.value(submitted[field.Name])
		switch {
		case problem != "":
			problems[field.Name] = problem
			continue
		case value == nil:
			continue
		}
		if len(content) > 1 {
			content = append(content, ',')
		}
		content = rawjson.AppendQuote(content, field.Name)
		content = append(append(content, ':'), value...)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return append(content, '}'), nil
}

// Defaults returns the content that the schema's defaults make. It reports false
// when a required field has none, or one that its own rules forbid.
func (f Form) Defaults() ([]byte, bool) {
	given := url.Values{}
	for i := range f.Fields {
		field := &f.Fields[i]
		if field.strayed || field.Default == nil && field.Required {
			return nil, false
		}
		given[field.Name] = field.Default
	}
	content, problems := f.Answer(given)
	return content, problems == nil
}

// value returns a field's value as JSON, nil when it is left out, or what is wrong
// with it.
func (f *Field) value(given []string) ([]byte, string) {
	switch f.Kind {
	case Boolean:
		return strconv.AppendBool(nil, len(given) > 0 && given[len(given)-1] == "true"), ""
	case Choices:
		return f.choices(given)
	}
	one := ""
	if len(given) > 0 {
		one = given[0]
	}
	if f.Kind == Integer || f.Kind == Number { // blanks make another text of a text, and another option of an option
		one = strings.TrimSpace(one)
	}
	if one == "" && !(len(given) > 0 && f.allowsEmpty()) {
		if f.Required {
			return nil, "Please fill this in."
		}
		return nil, ""
	}
	switch f.Kind {
	case Integer, Number:
		return f.number(one)
	case Choice:
		if !f.Offers(one) {
			return nil, "Please choose one of the options."
		}
		return rawjson.AppendQuote(nil, one), ""
	}
	return f.text(one)
}

// allowsEmpty reports whether the empty text is a value like others: the schema offers
// it, or has it as the default of what it needs.
func (f *Field) allowsEmpty() bool {
	return f.Kind == Choice && f.Offers("") || f.Kind == Text && f.Required && slices.Equal(f.Default, []string{""})
}

// Needed reports whether the field cannot stay empty. An option is chosen, also the empty one.
func (f *Field) Needed() bool { return f.Required && (f.Kind == Choice || !f.allowsEmpty()) }

// Offers reports whether value is one of the options.
func (f *Field) Offers(value string) bool {
	return slices.ContainsFunc(f.Options, func(o Option) bool { return o.Value == value })
}

func (f *Field) choices(given []string) ([]byte, string) {
	if len(given) == 0 && !f.Required {
		return nil, ""
	}
	out, free := []byte{'['}, f.offered()
	for i, v := range given {
		if !free[v] {
			return nil, "Please choose among the options."
		}
		delete(free, v)
		if i > 0 {
			out = append(out, ',')
		}
		out = rawjson.AppendQuote(out, v)
	}
	if !f.within(float64(len(given))) {
		return nil, fmt.Sprintf("Please choose %s.", f.Bounds())
	}
	return append(out, ']'), ""
}

// number keeps the digits as they were typed, where JSON can write them so.
func (f *Field) number(typed string) ([]byte, string) {
	n, ok := number(typed)
	if !ok {
		return nil, fmt.Sprintf("Please write a number, such as 12%s.", map[bool]string{true: " or 0.5"}[f.Kind == Number])
	}
	if f.Kind == Integer && n != math.Trunc(n) {
		return nil, "Please write a whole number."
	}
	if !f.within(n) {
		return nil, fmt.Sprintf("Please write a number %s.", f.Bounds())
	}
	if f.Kind == Integer {
		exact, _, _ := big.ParseFloat(typed, 10, 4096, big.ToNearestEven)
		whole, _ := exact.Int(nil)
		return whole.Append(nil, 10), ""
	}
	if rawjson.KindOf([]byte(typed)) == rawjson.Number && rawjson.Validate([]byte(typed)) == nil {
		return []byte(typed), ""
	}
	return strconv.AppendFloat(nil, n, 'f', -1, 64), ""
}

// number reads a finite number within a float's range, written with decimal digits.
func number(s string) (float64, bool) {
	if s == "" || len(s) > 64 || strings.Trim(s, "0123456789+-.eE") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil && !math.IsInf(n, 0) && math.Abs(n) < 1e300
}

func (f *Field) text(typed string) ([]byte, string) {
	typed = strings.ReplaceAll(typed, "\r\n", "\n") // as browsers submit line breaks
	typed, problem := f.formatted(typed)
	if problem != "" {
		return nil, problem
	}
	if n := utf8.RuneCountInString(rawjson.Readable(typed)); !f.within(float64(n)) {
		return nil, fmt.Sprintf("Please write %s; these are %d.", f.Bounds(), n)
	}
	return rawjson.AppendQuote(nil, typed), ""
}

func (f *Field) formatted(typed string) (string, string) {
	if typed == "" { // where that is allowed
		return "", ""
	}
	switch f.Format {
	case "email":
		if a, err := mail.ParseAddress(typed); err != nil || a.Address != typed {
			return "", "Please write an e-mail address, such as name@example.com."
		}
	case "uri":
		if u, err := url.Parse(typed); err != nil || u.Scheme == "" {
			return "", "Please write a complete address, such as https://example.com/page."
		}
	case "date":
		if _, err := time.Parse(time.DateOnly, typed); err != nil {
			return "", "Please write a date as year-month-day, such as 2026-01-31."
		}
	case "date-time":
		return dateTime(typed)
	}
	return typed, ""
}

// dateTime accepts what RFC 3339 has, and the shorter forms that people and
// browsers write, as UTC.
func dateTime(typed string) (string, string) {
	if _, err := time.Parse(time.RFC3339, typed); err == nil {
		return typed, ""
	}
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05"} {
		if t, err := time.Parse(layout, typed); err == nil {
			return t.Format(time.RFC3339), ""
		}
	}
	return "", "Please write a date and a time, such as 2026-01-31T15:04:05Z."
}

func (f *Field) within(n float64) bool {
	return (!f.min.set || n >= f.min.value) && (!f.max.set || n <= f.max.value)
}

// Bounds says in words which lengths, numbers or counts the field takes; empty when
// it takes all.
func (f *Field) Bounds() string {
	unit := map[Kind]string{Text: " character", Choices: " option"}[f.Kind]
	if most := cmp.Or(f.max.text, f.min.text); unit != "" && most != "1" {
		unit += "s"
	}
	switch {
	case f.min.set && f.max.set && f.min.value == f.max.value:
		return "exactly " + f.min.text + unit
	case f.min.set && f.max.set:
		return "from " + f.min.text + " to " + f.max.text + unit
	case f.min.set:
		return "at least " + f.min.text + unit
	case f.max.set:
		return "at most " + f.max.text + unit
	}
	return ""
}

// Long reports whether a text may be so long that it wants several lines.
func (f *Field) Long() bool { return f.Kind == Text && f.max.set && f.max.value > 200 }
