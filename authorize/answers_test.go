package authorize

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/peers/issuer"
)

// saying is a way to an authorization server that answers otherwise at one path.
type saying struct {
	path, kind, text string
	status           int
}

func (s saying) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path != s.path {
		return http.DefaultTransport.RoundTrip(r)
	}
	text := s.text
	if strings.Contains(text, "CODE") {
		form, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		_, code, _ := strings.Cut(string(form), "code=")
		code, _, _ = strings.Cut(code, "&")
		text = strings.ReplaceAll(text, "CODE", code)
	}
	return &http.Response{StatusCode: s.status, Header: http.Header{"Content-Type": {s.kind}}, Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)), Request: r}, nil
}

// What an authorization server answers that is of no use ends the sign-in with words that
// tell whose fault it is. What it can be used for is not shown as it came.
func TestAnswersOfNoUse(t *testing.T) {
	const json = "application/json"
	token := func(members string) saying {
		return saying{"/token", json, `{"token_type":"Bearer",` + members + `}`, 200}
	}
	for name, test := range map[string]struct {
		way        saying
		want, lack string
	}{
		"no token":             {token(`"expires_in":1`), "answered the request for a token with something else", "reached"},
		"no answer at all":     {saying{"/token", json, "<html>", 200}, "answered the request for a token with something else", "reached"},
		"a token of two lines": {token(`"access_token":"a\r\nX-Evil: 1"`), "a token that cannot be sent", ""},
		"a token of no end":    {token(`"access_token":"` + strings.Repeat("a", 100_000) + `"`), "a token that cannot be sent", "aaaaa"},
		"the code once more":   {saying{"/token", json, `{"error":"invalid_request","error_description":"not CODE"}`, 400}, "refused: invalid_request (not …)", ""},
		"the code as an error": {saying{"/token", json, `{"error":"unknown CODE","error_description":"see there"}`, 400}, "refused: unknown … (see there)", ""},
		"no id":                {saying{"/register", json, `{}`, 201}, "registered the bridge, but its answer cannot be used", ""},
		"a proof of its own":   {saying{"/register", json, `{"client_id":"x","token_endpoint_auth_method":"private_key_jwt"}`, 201}, "to prove itself by private_key_jwt", "PEM"},
	} {
		t.Run(name, func(t *testing.T) {
			i := issuer.New(t)
			a := newAgent(t, i, func(o *Options) { o.Issuers = &http.Client{Transport: test.way} })
			err := call(t, a)
			if err == nil || !strings.Contains(err.Error(), test.want) || test.lack != "" && strings.Contains(err.Error(), test.lack) {
				t.Errorf("told %v", err)
			}
			if a.Login().header() != "" {
				t.Error("there is a login")
			}
		})
	}
}

// Metadata without which a sign-in cannot end well end it before a page is opened.
func TestMetadataOfNoUse(t *testing.T) {
	for name, test := range map[string]struct {
		meta map[string]any
		want string
	}{
		"no page":           {map[string]any{"authorization_endpoint": nil}, "has no page to sign in on"},
		"no token endpoint": {map[string]any{"token_endpoint": nil}, "no safe token endpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			i := issuer.New(t)
			i.Meta = test.meta
			a := newAgent(t, i, nil)
			if err := call(t, a); err == nil || !strings.Contains(err.Error(), test.want) || i.Get(&i.Tabs) != 0 {
				t.Errorf("told %v; %d pages", err, i.Get(&i.Tabs))
			}
		})
	}
}

func TestAFragmentOfThePageTakesNothingAway(t *testing.T) {
	i := issuer.New(t)
	i.Meta = map[string]any{"authorization_endpoint": i.URL + "/authorize#top"}
	if err := call(t, newAgent(t, i, nil)); err != nil {
		t.Error(err)
	}
}

// Nothing that a server says makes a terminal do anything.
func TestNothingShownIsObeyedByATerminal(t *testing.T) {
	i := issuer.New(t)
	way := saying{"/device", "application/json", `{"device_code":"x","user_code":"A\u001b[31mB","verification_uri":"` + i.URL + `/v\u009b31m\u202e","expires_in":600,"interval":1}`, 200}
	a := newAgent(t, i, func(o *Options) { o.Grant, o.Issuers = Device, &http.Client{Transport: way} })
	ctx, cancel := context.WithCancel(t.Context())
	_, _ = a.SignIn(ctx, nil, func(p Pending) {
		if p.Code != "A[31mB" || strings.ContainsAny(p.URL, "\u009b\u202e\x1b") {
			t.Errorf("shown %q %q", p.URL, p.Code)
		}
		cancel()
	})
	way = saying{"/token", "application/json", `{"token_type":"Bearer","access_token":"x","scope":"a\u001b[31mb c"}`, 200}
	a = newAgent(t, i, func(o *Options) { o.Issuers = &http.Client{Transport: way} })
	if l, err := a.SignIn(t.Context(), nil, nil); err != nil || strings.Join(l.Granted, " ") != "a[31mb c" {
		t.Errorf("%+v %v", l, err)
	}
	if got := hostOf("https://" + strings.Repeat("a", 100_000) + ".example"); len(got) > 400 {
		t.Errorf("a host of %d bytes in a message", len(got))
	}
}
