package jsonrpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/rawjson"
	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name, text string
		kind       Kind
		want       Message
	}{
		{"request", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, Request, Message{ID: "1", Method: "ping"}},
		{"P-8 string id keeps its type", `{"jsonrpc":"2.0","id":"1","method":"ping"}`, Request, Message{ID: `"1"`, Method: "ping"}},
		{"P-7 zero is an id", `{"jsonrpc":"2.0","id":0,"method":"ping"}`, Request, Message{ID: "0", Method: "ping"}},
		{"P-7 the empty string is an id", `{"jsonrpc":"2.0","id":"","method":"ping"}`, Request, Message{ID: `""`, Method: "ping"}},
		{"ids keep their bytes", `{"jsonrpc":"2.0","id":"\u0061\/","method":"ping"}`, Request, Message{ID: `"\u0061\/"`, Method: "ping"}},
		{"large ids", `{"jsonrpc":"2.0","id":-12345678901234567890,"method":"ping"}`, Request, Message{ID: "-12345678901234567890", Method: "ping"}},
		{"three digits", `{"jsonrpc":"2.0","id":105,"method":"ping"}`, Request, Message{ID: "105", Method: "ping"}},
		{"two digits", `{"jsonrpc":"2.0","id":10,"method":"ping"}`, Request, Message{ID: "10", Method: "ping"}},
		{"negative id", `{"jsonrpc":"2.0","id":-7,"method":"ping"}`, Request, Message{ID: "-7", Method: "ping"}},
		{"P-6 params keep their bytes", ` { "params" : { "a" : 1.0,"b":"\ud800" } , "method":"x/y","id":1,"jsonrpc":"2.0"} `, Request,
			Message{ID: "1", Method: "x/y", Params: []byte(`{ "a" : 1.0,"b":"\ud800" }`)}},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/initialized","params":{}}`, Notification,
			Message{Method: "notifications/initialized", Params: []byte(`{}`)}},
		{"method with an escape", `{"jsonrpc":"2.0","method":"tools\/call","id":1}`, Request, Message{ID: "1", Method: "tools/call"}},
		{"result", `{"jsonrpc":"2.0","id":1,"result":{"a":[]}}`, Response, Message{ID: "1", Result: []byte(`{"a":[]}`)}},
		{"P-7 result null is a result", `{"jsonrpc":"2.0","id":1,"result":null}`, Response, Message{ID: "1", Result: []byte(`null`)}},
		{"error", `{"jsonrpc":"2.0","id":"a","error":{"code":-32602,"message":"no \"x\"","data":{"k": 1}}}`, Response,
			Message{ID: `"a"`, Error: &Error{Code: -32602, Message: `no "x"`, Data: []byte(`{"k": 1}`)}}},
		{"error without id", `{"jsonrpc":"2.0","error":{"code":-32700,"message":"?"}}`, Response, Message{Error: &Error{Code: -32700, Message: "?"}}},
		{"error with id null", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":""}}`, Response, Message{Error: &Error{Code: -32000}}},
		{"P-6 half a character in a method", `{"jsonrpc":"2.0","method":"x/\ud800","id":1}`, Request, Message{ID: "1", Method: "x/\xed\xa0\x80"}},
		{"P-6 half a character in an error", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"\udc00"}}`, Response, Message{ID: "1", Error: &Error{Code: 1, Message: "\xed\xb0\x80"}}},
		{"unknown members", `{"x":{"id":2},"jsonrpc":"2.0","id":1,"method":"ping","y":null}`, Request, Message{ID: "1", Method: "ping"}},
		{"names with escapes", `{"\u006Asonrpc":"2.0","\u0069d":1,"method":"ping"}`, Request, Message{ID: "1", Method: "ping"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse([]byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if got.Kind() != tt.kind || !same(got, tt.want) {
				t.Errorf("got %s %+v, want %s %+v", got.Kind(), got, tt.kind, tt.want)
			}
		})
	}
}

// same compares messages; nil and empty bytes differ (P-7).
func same(a, b Message) bool {
	bytes := func(x, y []byte) bool { return string(x) == string(y) && (x == nil) == (y == nil) }
	if (a.Error == nil) != (b.Error == nil) {
		return false
	}
	if a.Error != nil && (a.Error.Code != b.Error.Code || a.Error.Message != b.Error.Message || !bytes(a.Error.Data, b.Error.Data)) {
		return false
	}
	return a.ID == b.ID && a.Method == b.Method && bytes(a.Params, b.Params) && bytes(a.Result, b.Result)
}

func TestParseRefuses(t *testing.T) { // B-1
	tests := []struct {
		name, text string
		code       int
		id         ID
	}{
		{"no jsonrpc", `{"id":1,"method":"ping"}`, CodeInvalidRequest, "1"},
		{"jsonrpc 1.0", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, CodeInvalidRequest, "1"},
		{"jsonrpc number", `{"jsonrpc":2.0,"id":1,"method":"ping"}`, CodeInvalidRequest, "1"},
		{"id null", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, CodeInvalidRequest, ""},
		{"id fraction", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, CodeInvalidRequest, ""},
		{"id exponent", `{"jsonrpc":"2.0","id":1e3,"method":"ping"}`, CodeInvalidRequest, ""},
		{"id object", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, CodeInvalidRequest, ""},
		{"id true", `{"jsonrpc":"2.0","id":true,"method":"ping"}`, CodeInvalidRequest, ""},
		{"method number", `{"jsonrpc":"2.0","id":1,"method":1}`, CodeInvalidRequest, "1"},
		{"method null", `{"jsonrpc":"2.0","id":1,"method":null}`, CodeInvalidRequest, "1"},
		{"method too long", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("m", MaxMethod+1) + `"}`, CodeInvalidRequest, "1"},
		{"method empty", `{"jsonrpc":"2.0","id":1,"method":""}`, CodeInvalidRequest, "1"},
		{"params array", `{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`, CodeInvalidRequest, "1"},
		{"params null", `{"jsonrpc":"2.0","id":1,"method":"ping","params":null}`, CodeInvalidRequest, "1"},
		{"method and result", `{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`, CodeInvalidRequest, "1"},
		{"method and error", `{"jsonrpc":"2.0","id":1,"method":"ping","error":{"code":1,"message":""}}`, CodeInvalidRequest, "1"},
		{"result and error", `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}`, CodeInvalidRequest, "1"},
		{"nothing", `{"jsonrpc":"2.0","id":1}`, CodeInvalidRequest, "1"},
		{"result without id", `{"jsonrpc":"2.0","result":{}}`, CodeInvalidRequest, ""},
		{"result with id null", `{"jsonrpc":"2.0","id":null,"result":{}}`, CodeInvalidRequest, ""},
		{"error null", `{"jsonrpc":"2.0","id":1,"error":null}`, CodeInvalidRequest, "1"},
		{"error without code", `{"jsonrpc":"2.0","id":1,"error":{"message":""}}`, CodeInvalidRequest, "1"},
		{"error code string", `{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":""}}`, CodeInvalidRequest, "1"},
		{"error without message", `{"jsonrpc":"2.0","id":1,"error":{"code":1}}`, CodeInvalidRequest, "1"},
		{"array", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, CodeInvalidRequest, ""},
		{"string", `"x"`, CodeInvalidRequest, ""},
		{"nothing at all", ``, CodeParse, ""},
		{"no JSON", `hello`, CodeParse, ""},
		{"two messages", `{"jsonrpc":"2.0","id":1,"method":"a"}{"jsonrpc":"2.0","id":2,"method":"b"}`, CodeParse, "1"},
		{"duplicate member", `{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}`, CodeInvalidRequest, "1"},
		{"duplicate in params before the id", `{"method":"a","params":{"x":{"a":1,"a":2}},"id":"q","jsonrpc":"2.0"}`, CodeInvalidRequest, `"q"`},
		{"duplicate id, same", `{"jsonrpc":"2.0","id":1,"id":1,"method":"a"}`, CodeInvalidRequest, "1"},
		{"duplicate id, contradicting", `{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}`, CodeInvalidRequest, ""},
		{"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"method\":\"\xff\",\"id\":3}", CodeParse, "3"},
		{"too deep", `{"jsonrpc":"2.0","method":"a","params":{"a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `},"id":4}`, CodeParse, "4"},
		{"breaks off in params", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"na`, CodeParse, "7"},
		{"breaks off after the id", `{"jsonrpc":"2.0","id":7,`, CodeParse, "7"},
		{"breaks off where the id may go on", `{"jsonrpc":"2.0","id":7`, CodeParse, ""},
		{"breaks off right after a string id", `{"jsonrpc":"2.0","id":"7"`, CodeParse, `"7"`},
		{"breaks off inside a string id", `{"jsonrpc":"2.0","id":"7`, CodeParse, ""},
		{"damage after the id", `{"id":7,"jsonrpc":"2.0","method":ping}`, CodeParse, "7"},
		{"damage before the id", `{"method":ping,"id":7}`, CodeParse, "7"},
		{"id of a nested object is not taken", `{"params":{"id":7,`, CodeParse, ""},
		{"broken id", `{"id":01,"method":"ping"`, CodeParse, ""},
		{"id fraction in a broken text", `{"id":1.5,"method":`, CodeParse, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Parse([]byte(tt.text))
			var e *Error
			if !errors.As(err, &e) || e.Code != tt.code {
				t.Errorf("error %v, want code %d", err, tt.code)
			}
			want := Message{ID: tt.id}
			if !strings.Contains(tt.text, `"method"`) && (strings.Contains(tt.text, `"result"`) || strings.Contains(tt.text, `"error"`)) {
				want.Error = e // a response, broken as it is
			}
			if !same(m, want) {
				t.Errorf("message %+v, want %+v", m, want)
			}
		})
	}
}

func TestErrorTextIsBounded(t *testing.T) {
	e := &Error{Code: 1, Message: strings.Repeat("x", 10000), Data: []byte(`"secret"`)}
	if text := e.Error(); len(text) > 300 || strings.Contains(text, "secret") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

func TestSplitSpendsNothingOnABatchBeyondTheLimit(t *testing.T) {
	bomb := []byte("[" + strings.Repeat("1,", 1<<20) + "1]")
	if got, err := Split(bomb, 64); err != nil || len(got) != 65 {
		t.Errorf("%d elements, %v", len(got), err)
	}
	if n := testing.AllocsPerRun(3, func() { _, _ = Split(bomb, 64) }); n > 10 {
		t.Errorf("%v allocations", n)
	}
}

func TestSplit(t *testing.T) { // E.2
	got, err := Split([]byte(` [ {"a":1} , 2,{"a":1,"a":2} ] `), 3)
	if err != nil || len(got) != 3 || string(got[0]) != `{"a":1}` || string(got[1]) != `2` || string(got[2]) != `{"a":1,"a":2}` {
		t.Errorf("got %q, %v", got, err)
	}
	for text, code := range map[string]int{`[]`: CodeInvalidRequest, `{}`: CodeInvalidRequest, `[{]`: CodeParse, ``: CodeParse, `[1`: CodeParse} {
		var e *Error
		if _, err := Split([]byte(text), 9); !errors.As(err, &e) || e.Code != code {
			t.Errorf("%s: %v, want code %d", text, err, code)
		}
	}
	if !IsBatch([]byte(" \n[")) || IsBatch([]byte(`{}`)) || IsBatch(nil) {
		t.Error("IsBatch")
	}
}

func TestAppend(t *testing.T) {
	tests := []struct{ got, want string }{
		{string(AppendRequest(nil, "1", "ping", nil)), `{"jsonrpc":"2.0","id":1,"method":"ping"}`},
		{string(AppendRequest([]byte("x"), `"a"`, "a\"b", []byte(`{}`))), `x{"jsonrpc":"2.0","id":"a","method":"a\"b","params":{}}`},
		{string(AppendNotification(nil, "n", []byte(`{"a":1}`))), `{"jsonrpc":"2.0","method":"n","params":{"a":1}}`},
		{string(AppendNotification(nil, "n", nil)), `{"jsonrpc":"2.0","method":"n"}`},
		{string(AppendResult(nil, "1", []byte(`[]`))), `{"jsonrpc":"2.0","id":1,"result":[]}`},
		{string(AppendResult(nil, "1", nil)), `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{string(AppendError(nil, "1", &Error{Code: -1, Message: "a\n"})), `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"a\n"}}`},
		{string(AppendError(nil, "", &Error{Code: -1, Data: []byte(`null`)})), `{"jsonrpc":"2.0","error":{"code":-1,"message":"","data":null}}`},
		{string(stringID("a\"é")), `"a\"é"`},
		{string(IntID(-5)), `-5`},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got %s, want %s", tt.got, tt.want)
		}
	}
}

func TestWhatIsAppendedParses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.OneOf(rapid.Map(rapid.String(), stringID), rapid.Map(rapid.Int64(), IntID)).Draw(t, "id")
		method := rapid.StringMatching(`[ -~]{1,20}`).Draw(t, "method")
		params, err := json.Marshal(rapid.MapOf(rapid.String(), rapid.Int()).Draw(t, "params"))
		if err != nil {
			t.Fatal(err)
		}
		e := &Error{Code: rapid.Int().Draw(t, "code"), Message: rapid.String().Draw(t, "message"), Data: params}
		for _, tt := range []struct {
			text []byte
			want Message
		}{
			{AppendRequest(nil, id, method, params), Message{ID: id, Method: method, Params: params}},
			{AppendNotification(nil, method, nil), Message{Method: method}},
			{AppendResult(nil, id, params), Message{ID: id, Result: params}},
			{AppendError(nil, id, e), Message{ID: id, Error: e}},
		} {
			got, err := Parse(tt.text)
			if err != nil || !same(got, tt.want) {
				t.Fatalf("%s: %+v, %v", tt.text, got, err)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[1]}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","error":{"code":-32602,"message":"x","data":null}}`))
	f.Add([]byte(`[{"jsonrpc":"2.0","id":null,"result":{}}, {}]`))
	f.Add([]byte(`{"id":7,"params":{"na`))
	f.Add([]byte(`{"id":7,"error":{}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"resultType":{"resultType":1},"content":[{"resultType":2}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Code != CodeParse && e.Code != CodeInvalidRequest || !same(m, Message{ID: m.ID, Error: m.Error}) || m.Error != nil && m.Error != e {
				t.Errorf("%q: %+v, %v", b, m, err)
			}
			if m.ID != "" && (rawjson.Validate([]byte(m.ID)) != nil || !strings.Contains(string(b), string(m.ID))) {
				t.Errorf("%q: recovered id %q", b, m.ID)
			}
		} else {
			again(t, b, m)
		}
		r, typ, rerr := ParseResponse(b, m.ID)
		if fmt.Sprint(r, rerr) != fmt.Sprint(m, err) || rerr == nil && string(typ) != string(rawjson.Get(m.Result, "resultType")) {
			t.Errorf("%q: %+v, %s, %v; want %+v, %v", b, r, typ, rerr, m, err)
		}
		if all, err := Split(b, 100); err == nil {
			for _, element := range all {
				_, _ = Parse(element)
			}
		} else if rawjson.Validate(b) == nil && IsBatch(b) && len(rawjson.Compact(nil, b)) > 2 {
			t.Errorf("%q: %v", b, err)
		}
	})
}

// again writes m anew and expects to read the same.
func again(t *testing.T, b []byte, m Message) {
	var text []byte
	switch {
	case m.Kind() == Request:
		text = AppendRequest(nil, m.ID, m.Method, m.Params)
	case m.Kind() == Notification:
		text = AppendNotification(nil, m.Method, m.Params)
	case m.Error != nil:
		text = AppendError(nil, m.ID, m.Error)
	default:
		text = AppendResult(nil, m.ID, m.Result)
	}
	got, err := Parse(text)
	if err != nil || !same(got, m) {
		t.Errorf("%q read as %+v, written as %q, read as %+v, %v", b, m, text, got, err)
	}
}

// stringID returns the ID whose value is the string s.
func stringID(s string) ID { return ID(appendQuoted(nil, s)) }
