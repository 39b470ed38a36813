package page

import (
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcpbridge/bridge/ask/form"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/rawjson"
)

// maxForm bounds what a browser may submit, in bytes.
const maxForm = 1 << 20

// Body reads what a browser submits, for a desk elsewhere, and charges held for it. It returns false
// when it cannot be had, and the browser was told.
func (d *Desk) Body(w http.ResponseWriter, r *http.Request, held *budget.Hold) ([]byte, bool) {
	if r.Method != http.MethodPost {
		return nil, true
	}
	if !d.bounds(w, r, held) {
		return nil, false
	}
	form, err := io.ReadAll(r.Body)
	if err != nil {
		d.unread(w)
		return nil, false
	}
	return form, true
}

// bounds charges for what a browser submits, and bounds it; it returns false when the browser was told that
// there is no room for it.
func (d *Desk) bounds(w http.ResponseWriter, r *http.Request, held *budget.Hold) bool {
	length := r.ContentLength
	if length < 0 || length > maxForm {
		length = maxForm
	}
	if err := charge(held, int(length)); err != nil {
		secure(w.Header())
		w.Header().Set("Retry-After", "5")
		w.Header().Set("Connection", "close") // nobody wants to read the rest
		d.say(w, http.StatusServiceUnavailable, "The answer cannot be taken at the moment", "There is too much to do. Go back and try again.")
		return false
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	return true
}

func (d *Desk) unread(w http.ResponseWriter) {
	secure(w.Header())
	d.say(w, http.StatusBadRequest, "The answer could not be read", "It may be too long. Go back and try again.")
}

// read makes the schema's values of what a page's form submits. Fields and options go by their numbers, since browsers
// change texts (line breaks, NUL), and texts are valid UTF-8 whoever sends them. It returns false for a
// number that no option has.
func read(f *form.Form, submitted url.Values) (read url.Values, ok bool) {
	read = make(url.Values, len(f.Fields))
	for i := range f.Fields {
		field := &f.Fields[i]
		values := submitted[inputName(i)]
		read[field.Name] = values
		if len(field.Options) == 0 {
			for j := range values {
				values[j] = strings.ToValidUTF8(values[j], "\uFFFD")
				if len(field.Default) == 1 && values[j] == rawjson.Readable(field.Default[0]) { // nobody has changed it
					values[j] = field.Default[0]
				}
			}
			continue
		}
		values = slices.DeleteFunc(values, func(number string) bool { return number == "" }) // none is chosen
		for j := range values {
			at, err := strconv.ParseUint(values[j], 10, 16)
			if err != nil || at >= uint64(len(field.Options)) {
				return nil, false
			}
			values[j] = field.Options[at].Value
		}
		read[field.Name] = values
	}
	return read, true
}

// inputName names the input of a field, by which it is found on the page, too.
func inputName(field int) string { return "f" + strconv.Itoa(field) }

// toldApart returns options of which no two look the same: a page shows neither blanks at the ends of a title
// nor how many are in it. Those that would are shown with their values.
func toldApart(options []form.Option) []form.Option {
	seen := make(map[string]int, len(options))
	for _, o := range options {
		seen[look(o.Title)]++
	}
	shown := slices.Clone(options)
	for i := range shown {
		o := &shown[i]
		switch title := look(o.Title); {
		case title == "":
			o.Title = quoted(o.Value)
		case seen[title] > 1:
			o.Title += " (" + quoted(o.Value) + ")"
		}
	}
	return shown
}

// quoted is a value as code, in which each half of a character can be told from others, too.
func quoted(value string) string {
	if utf8.ValidString(value) {
		return strconv.Quote(value)
	}
	return string(rawjson.AppendQuote(nil, value))
}

func look(title string) string { return strings.Join(strings.Fields(title), " ") }
