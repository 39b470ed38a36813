package diff

import (
	"fmt"
	"strings"
	"testing"
)

// Members and elements are found by their names: messages of many of them would take hours otherwise.
func TestManyMembersAndElementsAreCompared(t *testing.T) {
	const n = 1 << 17
	var members, tools strings.Builder
	for k := range n {
		fmt.Fprintf(&members, `"m%d":1,`, k)
		fmt.Fprintf(&tools, `{"name":"t%d"},`, k)
	}
	object := func(value string) []byte { return []byte(`{` + members.String() + `"last":` + value + `}`) }
	array := func(last string) []byte { return []byte(`{"tools":[` + tools.String() + last + `]}`) }
	for name, messages := range map[string][2][]byte{
		"members":  {object("1"), object("2")},
		"elements": {array(`{"name":"last"}`), array(`{"name":"other"},{"name":"t0"}`)},
	} {
		changes, more := Compare(Result, "tools/list", messages[0], messages[1])
		if want := map[string]int{"members": 1, "elements": 2}[name]; len(changes)+more != want {
			t.Errorf("%s: %d changes and %d more", name, len(changes), more)
		}
	}
}
