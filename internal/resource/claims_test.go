package resource

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"crypto"

	"github.com/mcpbridge/bridge/internal/peers/issuer"
)

const ourHeader = `{"alg":"ES256","kid":"1","typ":"at+jwt"}`

// Names of claims are those of RFC 7519 letter by letter, and each is there once: who can
// have a claim of another name issued is nobody else by it.
func TestNamesOfClaimsAreReadAsTheyAre(t *testing.T) {
	s := issuer.NewSigner(t)
	r := checking(t, s, "tools:call")
	later, before := time.Now().Add(time.Hour).Unix(), time.Now().Add(-time.Hour).Unix()
	good := fmt.Sprintf(`"iss":%q,"aud":%q,"exp":%d,"scope":"tools:call"`, s.URL, endpoint, later)
	mallory := r.Principal(bringing("Bearer " + s.SignText(ourHeader, "{"+good+`,"sub":"mallory"}`)))
	for _, claims := range []string{
		`,"sub":"mallory","Sub":"alice"`, `,"Sub":"alice","sub":"mallory"`, `,"sub":"mallory","SUB":"alice"`, `,"sub":"mallory","` + "\u017f" + `ub":"alice"`,
	} {
		if r.Principal(bringing("Bearer "+s.SignText(ourHeader, "{"+good+claims+"}"))) != mallory {
			t.Errorf("%s is somebody else", claims)
		}
	}
	for name, claims := range map[string]string{
		"sub is missing":    good + `,"Sub":"alice"`,
		"sub twice":         good + `,"sub":"mallory","sub":"alice"`,
		"sub escaped twice": good + `,"sub":"mallory","\u0073ub":"alice"`,
		"iss":               fmt.Sprintf(`"iss":"https://other.example.com","Iss":%q,"aud":%q,"exp":%d,"scope":"tools:call","sub":"a"`, s.URL, endpoint, later),
		"aud":               fmt.Sprintf(`"iss":%q,"aud":"https://other.example.com","Aud":%q,"exp":%d,"scope":"tools:call","sub":"a"`, s.URL, endpoint, later),
		"exp":               fmt.Sprintf(`"iss":%q,"aud":%q,"exp":%d,"Exp":%d,"scope":"tools:call","sub":"a"`, s.URL, endpoint, before, later),
		"scope":             fmt.Sprintf(`"iss":%q,"aud":%q,"exp":%d,"scope":"","Scope":"tools:call","SCP":["tools:call"],"sub":"a"`, s.URL, endpoint, later),
		"nbf":               good + fmt.Sprintf(`,"nbf":%d,"Nbf":%d,"sub":"a"`, later, before),
	} {
		if r.Admit(bringing("Bearer "+s.SignText(ourHeader, "{"+claims+"}"))) == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}

// A time is a number of seconds (RFC 7519, section 2). What cannot be read as one is no end that lies ahead.
func TestATimeThatIsNoNumberIsNone(t *testing.T) {
	s := issuer.NewSigner(t)
	r := checking(t, s)
	before, later := time.Now().Add(-time.Hour).Unix(), time.Now().Add(time.Hour).Unix()
	body := fmt.Sprintf(`{"iss":%q,"aud":%q,"sub":"ada"`, s.URL, endpoint)
	for times, says := range map[string]string{
		fmt.Sprintf(`"exp":%d`, later):                  "",
		fmt.Sprintf(`"exp":%d.5`, later):                "",
		fmt.Sprintf(`"exp":%de0`, later):                "",
		fmt.Sprintf(`"exp":%d,"nbf":%d`, later, before): "",
		`"exp":1e400`:                    "does not say when it ends",
		`"exp":-1e400`:                   "does not say when it ends",
		`"exp":"1e400"`:                  "does not say when it ends",
		fmt.Sprintf(`"exp":"%d"`, later): "does not say when it ends",
		fmt.Sprintf(`"exp":[%d]`, later): "does not say when it ends",
		`"exp":true`:                     "does not say when it ends",
		`"exp":null`:                     "does not say when it ends",
		fmt.Sprintf(`"exp":%d,"nbf":-1e400`, later):       "is not one of",
		fmt.Sprintf(`"exp":%d,"nbf":"%d"`, later, before): "is not one of",
		fmt.Sprintf(`"exp":%d,"nbf":null`, later):         "is not one of",
	} {
		refusal := r.Admit(bringing("Bearer " + s.SignText(ourHeader, body+","+times+"}")))
		switch {
		case (refusal == nil) != (says == ""):
			t.Errorf("%s: %+v", times, refusal)
		case refusal != nil && (refusal.Status != 401 || !strings.Contains(refusal.Challenge, says)):
			t.Errorf("%s: %+v", times, refusal)
		}
	}
}

// What an issuer signs that is no access token is none.
func TestOtherKindsOfTokensAreNoAccessTokens(t *testing.T) {
	s := issuer.NewSigner(t)
	r := checking(t, s)
	body := fmt.Sprintf(`"iss":%q,"aud":%q,"exp":%d,"sub":"ada"`, s.URL, endpoint, time.Now().Add(time.Hour).Unix())
	for _, test := range []struct {
		typ, more string
		good      bool
	}{
		{"", "", true},
		{`,"typ":"JWT"`, "", true},
		{`,"typ":"jwt"`, "", true},
		{`,"typ":"at+jwt"`, "", true},
		{`,"typ":"application/AT+JWT"`, "", true},
		{`,"typ":"something of the issuer's own"`, "", true},
		{`,"typ":"logout+jwt"`, "", false},
		{`,"typ":"application/logout+jwt"`, "", false},
		{`,"typ":"dpop+jwt"`, "", false},
		{`,"typ":"secevent+jwt"`, "", false},
		{`,"typ":"dc+sd-jwt"`, "", false},
		{"", `,"events":{"http://schemas.openid.net/event/backchannel-logout":{}}`, false},
		{"", `,"at_hash":"x"`, true},
		{"", `,"c_hash":"x"`, false},
		{"", `,"token_use":"access"`, true},
		{"", `,"token_use":"id"`, false},
		{"", `,"typ":"Bearer"`, true},
		{"", `,"typ":"ID"`, false},
		{"", `,"typ":"Refresh"`, false},
		{"", `,"nonce":"x"`, true},
	} {
		refusal := r.Admit(bringing("Bearer " + s.SignText(`{"alg":"ES256","kid":"1"`+test.typ+`}`, "{"+body+test.more+"}")))
		switch {
		case (refusal == nil) != test.good:
			t.Errorf("%s%s: %+v", test.typ, test.more, refusal)
		case refusal != nil && (refusal.Status != 401 || !strings.Contains(refusal.Challenge, "no access token")):
			t.Errorf("%s%s: %+v", test.typ, test.more, refusal)
		}
	}
}

// A token that is bound to a key is worth nothing to who has stolen it, as long as nobody takes it without a proof.
func TestATokenThatIsBoundToAKeyIsNoBearerToken(t *testing.T) {
	s := issuer.NewSigner(t)
	r := checking(t, s)
	body := fmt.Sprintf(`{"iss":%q,"aud":%q,"exp":%d,"sub":"ada"`, s.URL, endpoint, time.Now().Add(time.Hour).Unix())
	for cnf, good := range map[string]bool{
		`{"jkt":"x"}`: false, `{"x5t#S256":"x"}`: false, `{"kid":"x"}`: false, `{}`: false, `"x"`: false, `null`: false,
	} {
		refusal := r.Admit(bringing("Bearer " + s.SignText(ourHeader, body+`,"cnf":`+cnf+"}")))
		if (refusal == nil) != good || refusal != nil && (refusal.Status != 401 || !strings.Contains(refusal.Challenge, "bound to a key")) {
			t.Errorf("%s: %+v", cnf, refusal)
		}
	}
}

// A key is used for what its issuer says that it is for.
func TestAKeyChecksOnlyWhatItIsFor(t *testing.T) {
	s := issuer.NewSigner(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(alg string, hash crypto.Hash) string {
		body := fmt.Sprintf(`{"iss":%q,"aud":%q,"exp":%d,"sub":"ada"}`, s.URL, endpoint, time.Now().Add(time.Hour).Unix())
		text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"`+alg+`","kid":"k"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte(body))
		sum := sha256.Sum256([]byte(text))
		digest := sum[:]
		if hash == crypto.SHA384 {
			long := sha512.Sum384([]byte(text))
			digest = long[:]
		}
		signature, err := rsa.SignPKCS1v15(rand.Reader, key, hash, digest)
		if err != nil {
			t.Fatal(err)
		}
		return text + "." + base64.RawURLEncoding.EncodeToString(signature)
	}
	part := base64.RawURLEncoding.EncodeToString
	jwk := `{"kty":"RSA","kid":"k","n":"` + part(key.N.Bytes()) + `","e":"` + part(big.NewInt(int64(key.E)).Bytes()) + `"%s}`
	const another = `,{"kty":"RSA","kid":"another","use":"sig","n":"sXchDaQebHnPiGvyDOAT4saGEUetSyo9MKLOoWFsueri23bOdgWp4Dy1WlUzewbgBHod5pcM9H95GQRV3JDXboIRROSBigeC5yjU1hGzHHyXss8UDprecbAYxknTcQkhslANGRUZmdTOQ5qTRsLAt6BTYuyvVRdhS8exSZEy_c4gs_7svlJJQ4H9_NxsiIoLwAEk7-Q3UXERGYw_75IDrGA84-lA_-Ct4eTlXHBIY2EaV7t7LjJaynVJCpkv4LKjTTAumiGUIuQhrNhZLuF_RJLqHpM2kgWFLU7-VTdL1VbC2tejvcI2BlMkEpk1BzBZI0KQB0GaDWFLN-aEAw3vRw","e":"AQAB"}`
	rs256, rs384 := sign("RS256", crypto.SHA256), sign("RS384", crypto.SHA384)
	for _, test := range []struct {
		members     string
		short, long bool
	}{
		{``, true, true},
		{`,"use":"sig"`, true, true},
		{`,"use":"enc"`, false, false},
		{`,"Use":"enc"`, true, true}, // which names nothing
		{`,"key_ops":["verify"]`, true, true},
		{`,"key_ops":["encrypt","wrapKey"]`, false, false},
		{`,"use":null,"alg":null,"key_ops":null`, true, true},
		{`,"alg":"RS256"`, true, false},
		{`,"alg":"RS384"`, false, true},
	} {
		s.Set(func() { s.KeySet = `{"keys":[` + fmt.Sprintf(jwk, test.members) + another + `]}` })
		r := checking(t, s)
		if status := statusOf(r, rs256); (status == http.StatusOK) != test.short {
			t.Errorf("%s: RS256 got %d", test.members, status)
		}
		if status := statusOf(r, rs384); (status == http.StatusOK) != test.long {
			t.Errorf("%s: RS384 got %d", test.members, status)
		}
	}
}
