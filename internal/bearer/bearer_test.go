package bearer

import (
	"encoding/base64"
	"strings"
	"testing"
)

// The parts of a token: {} and {"sub":"alice"}.
const head, claims = "e30", "eyJzdWIiOiJhbGljZSJ9"

func TestATokenIsOneWord(t *testing.T) {
	for header, want := range map[string]string{
		"Bearer abc":               "abc",
		"bearer a-._~+/Z9==":       "a-._~+/Z9==",
		"":                         "",
		"Bearer":                   "",
		"Bearer ":                  "",
		"Bearer  abc":              "",
		"Bearer abc def":           "",
		"Bearer abc ":              "",
		"Bearer abc\tdef":          "",
		"Bearer abc,Bearer":        "",
		"Bearer a=b":               "",
		"Bearer ==":                "",
		"Bearer\tabc":              "",
		"Basic abc":                "",
		"Bearer OPAQUE ." + claims: "",
	} {
		if got := Token(header); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
}

func TestClaimsAreThoseOfAWholeToken(t *testing.T) {
	for _, header := range []string{
		"Bearer OPAQUE ." + claims + ".x", // a server that takes the second word reads OPAQUE
		"Bearer " + head + "." + claims + ".x y",
		"Bearer  " + head + "." + claims + ".x",
		"Bearer " + head + "." + claims + ".",
		"Bearer ." + claims + ".x",
		"Bearer " + head + "." + claims,
		"Bearer " + head + "." + claims + ".x.y",
		"Bearer opaque." + claims + ".x",
		"Bearer MQ." + claims + ".x", // 1
		"Bearer " + head + ".MQ.x",
		"Bearer " + head + "." + claims + ".x+y",
		"Bearer " + head + "." + claims + "=.x",
		"Bearer " + head + "\n." + claims + ".x",
		"Basic " + head + "." + claims + ".x",
	} {
		if got := Claims(header); got != nil {
			t.Errorf("%q claims %s", header, got)
		}
	}
	if got := Claims("bearer " + head + "." + claims + ".x-_"); string(got) != `{"sub":"alice"}` {
		t.Errorf("%s", got)
	}
}

// TestNoTwoSubjectsAreOne: half a character reads like any other, and a zero byte could move from one name into the other.
func TestNoTwoSubjectsAreOne(t *testing.T) {
	for claims, named := range map[string]bool{
		`{"iss":"i","sub":"a"}`: true, `{"iss":"i","sub":"ä\ud83d\ude00"}`: true, `{"iss":"i"}`: false,
		`{"iss":"i","sub":"a\ud800"}`: false, `{"iss":"i","sub":"a\ud801"}`: false, `{"iss":"i\u0000a","sub":"b"}`: false, `{"iss":"i","sub":"a\u0000b"}`: false,
	} {
		header := "Bearer " + head + "." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".x"
		if got := Subject(header); (got != "") != named {
			t.Errorf("%s names %q", claims, got)
		}
	}
}

func TestWhatHasOneReading(t *testing.T) {
	for header, want := range map[string]bool{
		"Bearer abc": true, "Bearer 1|abc": true, `Token token="abc"`: true, "key": true, "Basic abc=": true,
		"": false, "Bearer ": false, "Bearer  abc": false, "Bearer abc def": false, "Bearer abc\tdef": false, "Bearer abc ": false,
	} {
		if got := Single(header); got != want {
			t.Errorf("%q: %v", header, got)
		}
	}
}

func TestAForgedTokenSaysTheSameUnderAnotherSignature(t *testing.T) {
	const header = "Bearer " + head + "." + claims + ".c2lnbmVk"
	forged := Forged(header)
	if forged == header || !strings.HasPrefix(forged, "Bearer "+head+"."+claims+".") || string(Claims(forged)) != string(Claims(header)) {
		t.Errorf("%q", forged)
	}
	if other := Forged(header); other == forged {
		t.Error("the same again")
	}
	if got := Forged("Bearer opaque"); got != "" {
		t.Errorf("of an opaque one: %q", got)
	}
}
