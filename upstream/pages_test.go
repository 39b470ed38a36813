package upstream

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/jsonrpc"
)

// book answers with its pages in order, and records the params.
func book(asked *[]string, pages ...string) func([]byte) (*Answer, error) {
	return func(params []byte) (*Answer, error) {
		*asked = append(*asked, string(params))
		return &Answer{Result: []byte(pages[min(len(*asked), len(pages))-1])}, nil
	}
}

func TestAListIsReadToItsLastPage(t *testing.T) {
	var asked, read []string
	err := EachPage([]byte(`{"a":1}`), book(&asked, `{"tools":[1],"nextCursor":"\u0032"}`, `{"tools":[2],"nextCursor":null}`), func(page *Answer) error {
		read = append(read, string(page.Result))
		return nil
	})
	if want := `{"_meta":{"a":1}} {"_meta":{"a":1},"cursor":"\u0032"}`; err != nil || strings.Join(asked, " ") != want || len(read) != 2 {
		t.Errorf("asked %v, read %v, %v", asked, read, err)
	}
}

func TestAListThatDoesNotEndIsGivenUp(t *testing.T) {
	var asked []string
	nothing := func(*Answer) error { return nil }
	if err := EachPage(nil, book(&asked, `{"nextCursor":"a"}`), nothing); !errors.Is(err, errLoop) || len(asked) != 2 {
		t.Errorf("a server that names one page for ever was asked %d times: %v", len(asked), err)
	}
	asked = nil
	if err := EachPage(nil, book(&asked, strings.Split(strings.Repeat(`{"nextCursor":"a"} {"nextCursor":"b"} `, maxPages), " ")...), nothing); err == nil || len(asked) != maxPages {
		t.Errorf("asked %d times: %v", len(asked), err)
	}
}

func TestAListEndsWithAnError(t *testing.T) {
	refused := &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound}
	err := EachPage(nil, func([]byte) (*Answer, error) { return &Answer{Error: refused}, nil }, nil)
	if !errors.Is(err, error(refused)) {
		t.Errorf("got %v", err)
	}
	var asked []string
	enough := errors.New("enough")
	if err := EachPage(nil, book(&asked, `{"nextCursor":"a"}`), func(*Answer) error { return enough }); !errors.Is(err, enough) || len(asked) != 1 {
		t.Errorf("asked %d times, %v", len(asked), err)
	}
}
