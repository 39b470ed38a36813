package translate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// many joins what make returns for 0 to n-1 by commas.
func many(n int, part func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = part(i)
	}
	return strings.Join(parts, ",")
}

func multi(name string, options int, more string) string {
	return fmt.Sprintf(`%q:{"type":"array","items":{"enum":[%s]}%s}`, name, many(options, func(i int) string { return strconv.Quote("o" + strconv.Itoa(i)) }), more)
}

// A server's form cannot make the bridge ask, or work, without bounds (C.5, D-I12).
func TestMultiSelectsHaveBounds_C5(t *testing.T) {
	fields := func(n int) string {
		return form(many(n, func(i int) string { return multi("f"+strconv.Itoa(i), 1, "") }), "")
	}
	// f, f_, f__ and so on try the same names in turn
	colliding := func(n int) string {
		return form(many(n, func(i int) string { return multi("f"+strings.Repeat("_", i), 1, "") })+","+
			many(4*n, func(i int) string { return `"f__` + strings.Repeat("_", i) + `1":{"type":"string"}` }), "")
	}
	for name, tt := range map[string]struct {
		in    string
		asked bool
	}{
		"as many fields as may be":          {fields(maxMultis), true},
		"one field more":                    {fields(maxMultis + 1), false},
		"as many options as may be":         {form(multi("f", maxMultiOptions, ""), ""), true},
		"one option more":                   {form(multi("f", maxMultiOptions+1, ""), ""), false},
		"one more in all":                   {form(multi("f", maxMultiOptions, "")+","+multi("g", 1, ""), ""), false},
		"titled options":                    {form(`"f":{"type":"array","items":{"anyOf":[`+many(maxMultiOptions+1, func(int) string { return `{"const":"a"}` })+`]}}`, ""), false},
		"a description that is repeated":    {form(multi("f", 100, `,"description":"`+strings.Repeat("d", 10_000)+`"`), ""), true},
		"a description repeated too often":  {form(multi("f", 1000, `,"description":"`+strings.Repeat("d", 10_000)+`"`), ""), false},
		"a name repeated too often":         {form(multi(strings.Repeat("f", 10_000), 1000, ""), ""), false},
		"names that are taken":              {colliding(16), true},
		"names of which too many are taken": {colliding(200), false},
		"single selects are not bounded":    {form(`"f":{"type":"string","oneOf":[`+many(5000, func(int) string { return `{"const":"a"}` })+`]}`, ""), true},
		"nor are fields of any other kind":  {form(many(5000, func(i int) string { return `"f` + strconv.Itoa(i) + `":{"type":"string"}` }), ""), true},
		"2025-11-25 has them as they are":   {"", true},
	} {
		t.Run(name, func(t *testing.T) {
			rules := Rules{Version: r25b}
			if tt.in == "" {
				rules.Version, tt.in = r25c, fields(maxMultis+1)
			}
			got, err := rules.InputRequest("elicitation/create", []byte(tt.in), nil)
			var u *Unexpressible
			if asked := err == nil; asked != tt.asked || !asked && (!errors.As(err, &u) || u.Answer != nil) {
				t.Fatalf("asked %v, %v", asked, err)
			}
			if len(got) > len(tt.in)+4*maxMultiText {
				t.Errorf("%d bytes became %d", len(tt.in), len(got))
			}
			_, err = rules.InputResponse("elicitation/create", []byte(tt.in), []byte(`{"action":"accept","content":{"z":"a"}}`))
			var bad *BadAnswer
			if err != nil != !tt.asked || err != nil && !errors.As(err, &bad) {
				t.Errorf("answer: %v", err)
			}
		})
	}
	_, err := Rules{Version: r25b, CancelMultiSelect: true}.InputRequest("elicitation/create", []byte(fields(maxMultis+1)), nil)
	var u *Unexpressible
	if !errors.As(err, &u) || string(u.Answer) != cancelAnswer {
		t.Errorf("Q12: %v", err)
	}
}

// The largest form that a server can send costs as much as its bytes do: required
// names and defaults are looked up. Compared one by one this would take minutes.
func TestTheLargestFormOfMultiSelectsIsGoneOverOnce_C5(t *testing.T) {
	const size = 16 << 20
	name := func(i int) string { return fmt.Sprintf("field-%06d", i%maxMultis) }
	required := `,"required":[` + many(size/2/15, func(i int) string { return strconv.Quote(name(i)) }) + `]`
	defaults := `,"default":[` + many(size/2/8, func(i int) string { return fmt.Sprintf(`"x%04d"`, i%10_000) }) + `]`
	in := []byte(form(multi("many", maxMultiOptions-maxMultis, defaults)+","+
		many(maxMultis-1, func(i int) string { return multi(name(i), 1, "") }), required))
	got, err := Rules{Version: r25b}.InputRequest("elicitation/create", in, nil)
	if err != nil || strings.Count(string(got), `"boolean"`) != maxMultiOptions-1 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	answer, err := Rules{Version: r25b}.InputResponse("elicitation/create", in, []byte(`{"action":"accept","content":{}}`))
	if err != nil || strings.Count(string(answer), `[]`) != maxMultis-1 {
		t.Errorf("%.200s, %v", answer, err) // required ones that the user left alone
	}
}

// Forms without multi-select fields, nearly all, cost no memory to find that out.
func TestFormsWithoutMultiSelectsCostNothing_C5(t *testing.T) {
	schema := []byte(`{"type":"object","properties":{"name":{"type":"string"},"n":{"type":"integer"}},"required":["name"]}`)
	if got := testing.AllocsPerRun(100, func() {
		if f := multiSelects(schema); f.find([]byte("name")) != nil {
			t.Error("found")
		}
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// P-6: options, titles, names and defaults that differ in half a character are told apart.
func TestMultiSelectsKeepHalvesOfCharactersApart_C5(t *testing.T) {
	in := []byte(form(`"f\ud800":{"type":"array","items":{"enum":["\ud800","\ud801"]},"default":["\ud801"]},`+
		`"f\ud801":{"type":"array","items":{"anyOf":[{"const":"a","title":"\udc00"}]}}`, `,"required":["f\ud800"]`))
	rules := Rules{Version: r25b}
	got, err := rules.InputRequest("elicitation/create", in, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"f\ud800__1":{"type":"boolean","title":"\ud800"`, `"f\ud800__2":{"type":"boolean","title":"\ud801"`, `"f\ud801__1":{"type":"boolean","title":"\udc00"`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
	if strings.Count(string(got), `"default":true`) != 1 || strings.Count(string(got), `"default":false`) != 1 || strings.Contains(string(got), `"f\ud800"`) {
		t.Errorf("got %s", got)
	}
	answer, err := rules.InputResponse("elicitation/create", in, []byte(`{"action":"accept","content":{"f\ud800__2":true,"f\ud801__1":true}}`))
	if want := `{"action":"accept","content":{"f\ud800":["\ud801"],"f\ud801":["a"]}}`; err != nil || string(answer) != want {
		t.Errorf("%s, %v", answer, err)
	}
}
