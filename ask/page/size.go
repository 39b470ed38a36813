package page

import (
	"strings"

	"github.com/mcpbridge/bridge/internal/budget"
)

// What of a page and of its parts is the template's own, at most, in bytes.
const (
	pageSize   = 4 << 10
	fieldSize  = 1 << 10
	optionSize = 256
	entrySize  = 256
)

// charge charges for a form or a page of this size. A form is there as it came, read and decoded,
// a page as it is drawn and as its largest part is escaped. A small one may bring the answer
// that ends what is held.
func charge(held *budget.Hold, size int) error {
	const copies, small = 4, 16 << 10
	if size > small {
		return held.Grow(copies * size)
	}
	return held.Borrow(copies * size)
}

// size is how long the page becomes, at most.
func (v *view) size() int {
	n := pageSize + escaped(v.Title, v.Server, v.Tool, v.Message, v.Preview, v.URL, v.URL, v.Host, v.Inbox, v.Style, v.Advice)
	for i := range v.Fields {
		f := &v.Fields[i]
		n += fieldSize + escaped(f.Title, f.Description, f.Hint, f.Problem, f.Value)
		for _, o := range f.Options {
			n += optionSize + escaped(o.Value, o.Title)
		}
	}
	for i := range v.Problems {
		n += optionSize + escaped(v.Problems[i].Title, v.Problems[i].Text)
	}
	for _, e := range v.Entries {
		n += entrySize + escaped(e.Link, e.Server, e.Tool, e.Message, e.Asked)
	}
	return n
}

// escaped is how long texts become in HTML.
func escaped(texts ...string) int {
	n := 0
	for _, text := range texts {
		n += len(text)
		for _, c := range []string{"&", "<", ">", `"`, "'", "+", "\x00"} {
			n += 4 * strings.Count(text, c)
		}
	}
	return n
}
