package page

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcpbridge/bridge/ask/form"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/rawjson"
)

//go:embed page.html
var source string

//go:embed style.css
var style []byte

var pages = template.Must(template.New("").Parse(source))

// view is what a page shows.
type view struct {
	Title, Advice string
	Style         string // URL of the style sheet
	Inbox         string // URL of the inbox; empty on pages that are of no question

	// of a question
	Server, Tool, Message, Preview string
	URL, Host                      string
	Guard                          string
	Fields                         []fieldView
	Problems                       []problem
	Again                          bool // the form was not taken, though nothing in it is wrong
	Left                           string
	// of the inbox
	Entries []entry

	account *budget.Account // is charged with the page; nil: nobody, for a notice
}

type entry struct{ Link, Server, Tool, Message, Asked string }

type problem struct{ ID, Title, Text string }

// fieldView is a field as the template draws it.
type fieldView struct {
	form.Field
	ID      string
	Input   string // type of the input element
	Value   string
	Rows    int // above 1: several lines
	chosen  map[string]bool
	Hint    string
	Problem string
}

// Has reports whether an option is chosen.
func (f fieldView) Has(value string) bool { return f.chosen[value] }

// Described names what describes the field, for screen readers.
func (f fieldView) Described() string {
	var ids []string
	if f.Hint != "" || f.Description != "" {
		ids = append(ids, f.ID+"-hint")
	}
	if f.Problem != "" {
		ids = append(ids, f.ID+"-problem")
	}
	return strings.Join(ids, " ")
}

// draw shows the form of a question with the values that it has so far.
func (d *Desk) draw(w http.ResponseWriter, status int, q *waiting, browser string, values url.Values, problems map[string]string) {
	v := view{
		Title: q.Server + " asks", Server: q.Server, Tool: q.Tool, Message: q.Message, Preview: q.Preview,
		URL: q.URL, Guard: d.guard(browser, q.token), Inbox: d.inboxOf(q.Owner, browser), Again: status == http.StatusForbidden,
		account: q.Account,
	}
	if u, err := url.Parse(q.URL); err == nil {
		v.Host = u.Host
	}
	if !q.Deadline.IsZero() {
		v.Left = span(time.Until(q.Deadline))
	}
	for i := range q.Form.Fields {
		f := newFieldView(i, q.Form.Fields[i], values[q.Form.Fields[i].Name])
		if text := problems[f.Name]; text != "" {
			f.Problem = text
			v.Problems = append(v.Problems, problem{ID: f.ID, Title: f.Title, Text: text})
		}
		v.Fields = append(v.Fields, f)
	}
	d.render(w, status, "question", v)
}

func newFieldView(i int, f form.Field, values []string) fieldView {
	v := fieldView{Field: f, ID: inputName(i), chosen: make(map[string]bool, len(values)), Hint: f.Bounds(), Input: "text", Rows: 1}
	if len(values) > 0 {
		v.Value = rawjson.Readable(values[0])
	}
	for _, value := range values {
		v.chosen[value] = true
	}
	switch f.Kind {
	case form.Text:
		v.Input, v.Hint = inputOf(f, v.Hint)
		if f.Format == "" && (f.Long() || strings.Contains(v.Value, "\n")) { // a single line has no breaks
			v.Rows = 4
		}
	case form.Choice, form.Choices:
		v.Options = toldApart(f.Options)
	default: // numbers, too: an input of that type hides what was typed wrongly
	}
	return v
}

// inputOf returns the type of a text's input element, and its hint.
func inputOf(f form.Field, hint string) (input, text string) {
	switch f.Format {
	case "email":
		return "email", hint
	case "uri":
		return "url", hint
	case "date":
		return "date", hint
	case "date-time":
		return "text", "a date and a time, such as 2026-01-31T15:04:05Z"
	}
	return "text", hint
}

// over says what became of a question that no longer waits.
func (d *Desk) over(w http.ResponseWriter, end outcome) {
	switch end {
	case accepted, declined, cancelled:
		d.say(w, http.StatusGone, "This question was answered", "A link can be used once. There is nothing left to do here.")
	case withdrawn:
		d.say(w, http.StatusGone, "This question is no longer open", "Nobody waits for its answer any more: its time is over, the call has ended, or the bridge is being stopped. If you still want what you asked for, have your application make the call again.")
	default:
		d.say(w, http.StatusNotFound, "There is no such question", "The link is wrong or very old, or the bridge was restarted. Copy it again, whole; if that does not help, have your application make the call again.")
	}
}

// thank closes the story.
func (d *Desk) thank(w http.ResponseWriter, q *waiting, browser string, how outcome) {
	v := view{Inbox: d.inboxOf(q.Owner, browser), Server: q.Server, account: q.Account}
	name := "notice"
	switch {
	case how == accepted && q.URL != "":
		name, v.Title, v.URL = "visit", "Go on at the other site", q.URL
	case how == accepted:
		v.Title, v.Advice = "Thank you", "Your answer is on its way to "+q.Server+". Go back to the program that you came from; if it said to call again, ask it to."
	case how == declined:
		v.Title, v.Advice = "Declined", q.Server+" is told that you said no. You can close this page."
	default:
		v.Title, v.Advice = "Cancelled", q.Server+" is told that you made no choice. You can close this page."
	}
	d.render(w, http.StatusOK, name, v)
}

func (d *Desk) say(w http.ResponseWriter, status int, title, advice string) {
	d.render(w, status, "notice", view{Title: title, Advice: advice})
}

func (d *Desk) render(w http.ResponseWriter, status int, name string, v view) {
	v.Style = d.base.JoinPath("style.css").String()
	held, size := budget.On(v.account), v.size()
	defer held.Release()
	if err := charge(&held, size); err != nil {
		w.Header().Set("Retry-After", "5")
		d.say(w, http.StatusServiceUnavailable, "This page cannot be shown at the moment", "There is too much to do. Try again.")
		return
	}
	var page bytes.Buffer
	page.Grow(size)
	if err := pages.ExecuteTemplate(&page, name, v); err != nil {
		http.Error(w, "this page could not be drawn", http.StatusInternalServerError)
		return
	}
	whole := page.Bytes()
	if !utf8.Valid(whole) { // JSON can spell halves of characters
		whole = bytes.ToValidUTF8(whole, []byte("\uFFFD"))
	}
	_ = held.Set(cap(whole)) // for as long as the browser takes
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(whole)
}

// beginning is as much of a message as a list of them shows.
func beginning(message string) string {
	const most = 300
	if runes := []rune(message); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return message
}

func ago(d time.Duration) string {
	if d < time.Minute {
		return "just now"
	}
	return span(d) + " ago"
}

// span writes a duration as people say it.
func span(d time.Duration) string {
	switch minutes := int(d.Round(time.Minute) / time.Minute); {
	case minutes < 2:
		return "a minute"
	case minutes < 120:
		return fmt.Sprintf("%d minutes", minutes)
	default:
		return fmt.Sprintf("%d hours", minutes/60)
	}
}
