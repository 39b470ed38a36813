package jsonrpc

import "testing"

func TestTrailingIDIsTakenOnlyFromTheMessageItself(t *testing.T) {
	for end, want := range map[string]ID{
		`xxx"}]},"jsonrpc":"2.0","id":17}`:     `17`,
		`xxx"}]},"id":"a-1","jsonrpc":"2.0"}`:  `"a-1"`,
		"xxx\"}]} , \"id\" : -3 }\r\n":         `-3`,
		`xxx"}]},"id":""}`:                     `""`,
		`xxx"}]},"id":1.5}`:                    "",
		`xxx"}]},"id":null}`:                   "",
		`xxx"}],"id":17}}`:                     "", // of the result
		`xxx,\"id\":17}"}`:                     "", // inside a string
		`xxx,\"id\":\"17"}`:                    "",
		`xxx"}]},"id":17,"result":{}}`:         "",
		`xxx"}]},"id":17`:                      "", // cut off
		`xxx"}]},"jsonrpc":"1.0","id":17,"a"}`: "",
		`"id":17}`:                             "", // the end of some other name?
		``:                                     "",
	} {
		if got := TrailingID([]byte(end)); got != want {
			t.Errorf("%s: got %s, want %s", end, got, want)
		}
	}
}

func FuzzTrailingID(f *testing.F) {
	f.Add([]byte(`{"result":{},"jsonrpc":"2.0","id":17}`))
	f.Add([]byte(`{"a":",\"id\":1}","id":"x"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		msg, err := Parse(text)
		if id := TrailingID(text); err == nil && id != "" && id != msg.ID {
			t.Errorf("%q has the id %s, not %s", text, msg.ID, id)
		}
	})
}
