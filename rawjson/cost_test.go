package rawjson

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The texts below are as long as a server's may be. Each would take minutes or hours if what is done for one of
// its members were done for each of the others, too.

func TestManyEditsAreMadeInOnePass(t *testing.T) {
	const n = 1 << 18
	edits := make([]Edit, n)
	var obj, want strings.Builder
	for k := range edits {
		edits[k] = Edit{Name: fmt.Sprint("m", k), Value: []byte("1")}
		if k%2 == 0 {
			fmt.Fprintf(&obj, `,"m%d":0`, k)
			fmt.Fprintf(&want, `,"m%d":1`, k)
		}
	}
	for k := 1; k < n; k += 2 {
		fmt.Fprintf(&want, `,"m%d":1`, k)
	}
	if got := string(Apply(nil, []byte("{"+obj.String()[1:]+"}"), edits...)); got != "{"+want.String()[1:]+"}" {
		t.Errorf("%d bytes, want %d", len(got), want.Len()+1)
	}
}

// Many edits do what they do one by one, but for the places of new members.
func TestManyEditsDoWhatFewDo(t *testing.T) {
	names := rapid.Map(rapid.IntRange(0, 150), func(n int) string { return fmt.Sprint(`n"`, n) })
	rapid.Check(t, func(t *rapid.T) {
		obj := "{"
		for k, name := range rapid.SliceOfNDistinct(names, 0, 100, rapid.ID[string]).Draw(t, "members") {
			raw := string(AppendQuote(nil, name))
			if k > 0 {
				obj += ","
			}
			if k%3 == 0 {
				raw = strings.Replace(raw, "n", `\u006e`, 1)
			}
			obj += raw + ":0"
		}
		edits := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Edit {
			value := []byte(rapid.SampledFrom([]string{"", "1", `"x"`}).Draw(t, "value"))
			return Edit{names.Draw(t, "name"), value}
		}), maxEdits+1, 200).Draw(t, "edits")
		want := []byte(obj + "}")
		for _, e := range edits {
			want = Apply(nil, want, e)
		}
		got := Apply(nil, []byte(obj+"}"), edits...)
		if Validate(got) != nil || !Equal(got, want) {
			t.Fatalf("%s, want %s", got, want)
		}
	})
}

// What many edits take is no burden of few.
func TestFewEditsTakeNoMemory(t *testing.T) {
	obj, dst := []byte(`{"a":1,"b":2}`), make([]byte, 0, 64)
	if n := testing.AllocsPerRun(10, func() { dst = Apply(dst[:0], obj, Edit{"a", []byte("3")}, Edit{"c", []byte("4")}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The long name of an object is not read again for each member of it, be they all of one name.
func TestALongNameIsNotReadForEachMember(t *testing.T) {
	var distinct strings.Builder
	for k := range maxLinear + 1 {
		fmt.Fprintf(&distinct, `"%d":1,`, k)
	}
	text := `{"` + strings.Repeat("r", 8<<20) + `":{` + distinct.String() + strings.TrimSuffix(strings.Repeat(`"a":1,`, 8<<20/6), ",") + `}}`
	fields := []Field{{Name: "a", In: "b"}}
	if err := Survey([]byte(text), fields); !errors.Is(err, ErrDuplicate) || fields[0].Value != nil {
		t.Errorf("%v, %q", err, fields[0].Value)
	}
}
