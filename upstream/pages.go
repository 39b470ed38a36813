package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/mcpbridge/bridge/rawjson"
)

// maxPages bounds the pages of a list that are read at once.
const maxPages = 1000

// errLoop is the end of a list whose server names the same page as the next one.
var errLoop = errors.New("the list of the server does not end: it names one page twice")

// EachPage reads a list page by page, until one names no next or read returns an
// error. ask sends the request for a page, whose params carry the raw _meta; its
// answer is released after read. The error is that of ask or read, a *jsonrpc.Error
// of the server, or says that the list does not end.
func EachPage(meta []byte, ask func(params []byte) (*Answer, error), read func(page *Answer) error) error {
	var cursor []byte
	for range maxPages {
		next, err := readPage(meta, cursor, ask, read)
		if next == nil || err != nil {
			return err
		}
		if bytes.Equal(next, cursor) {
			return errLoop
		}
		cursor = next
	}
	return fmt.Errorf("the list of the server did not end after %d pages", maxPages)
}

// readPage returns the raw cursor of the next page, nil after the last one.
func readPage(meta, cursor []byte, ask func([]byte) (*Answer, error), read func(*Answer) error) ([]byte, error) {
	page, err := ask(rawjson.Apply(nil, []byte("{}"),
		rawjson.Edit{Name: "_meta", Value: meta}, rawjson.Edit{Name: "cursor", Value: cursor}))
	if err != nil {
		return nil, err
	}
	defer page.Release()
	if page.Error != nil {
		return nil, page.Error
	}
	next := rawjson.Get(page.Result, "nextCursor")
	if rawjson.KindOf(next) != rawjson.String {
		return nil, read(page)
	}
	next = slices.Clone(next)
	return next, read(page)
}
