package hop

import (
	"maps"
	"net/http"
	"net/textproto"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// sample is a field that a row is about.
func sample(r row) string {
	if strings.HasSuffix(r.name, "-") {
		return r.name + "Sample"
	}
	return r.name
}

// gone reports what is left of a field that a client sends, each way up.
func up(p *Policy, client http.Header, name string) (withMade, withPassed []string) {
	p.Made(client, func(n, v string) {
		if n == name {
			withMade = append(withMade, v)
		}
	})
	through := client.Clone()
	p.Pass(through)
	return withMade, through[name]
}

// The expectations are written out once more: a row that changes by accident is
// an attack that becomes possible.
func TestEachRow(t *testing.T) {
	const nowhere, message = "", "passed"
	want := map[string]string{
		"Connection": nowhere, "Expect": nowhere, "Host": nowhere, "Http2-Settings": nowhere, "Keep-Alive": nowhere,
		"Proxy-Connection": nowhere, "Te": nowhere, "Trailer": nowhere, "Transfer-Encoding": nowhere, "Upgrade": nowhere,
		"Content-Length": message, "Accept": message, "Accept-Encoding": message, "Content-Encoding": message, "Content-Type": message,
		"Last-Event-Id": message, "Mcp-": message, "User-Agent": "passed configured", "Authorization": "passed configured",
		"Cookie": "configured", "Forwarded": "configured", "Proxy": "configured", "Origin": "configured", "Proxy-": "configured",
		"Sec-": "configured", "Via": "configured", "X-Forwarded-": "configured", "X-Real-Ip": "configured",
	}
	for _, name := range ofProxies {
		want[name] = "configured"
	}
	for _, name := range ofUsers { // by a proxy that is trusted: of others they end at the edge
		want[name] = "made passed configured"
	}
	for _, r := range table {
		t.Run(r.name, func(t *testing.T) {
			expected, listed := want[r.name]
			if !listed {
				t.Fatal("the row has no expectation")
			}
			delete(want, r.name)
			if got := observed(sample(r)); got != expected {
				t.Errorf("goes %q, want %q", got, expected)
			}
			for _, look := range []string{
				strings.ReplaceAll(sample(r), "-", "_"), strings.ToLower(strings.ReplaceAll(sample(r), "-", "_")), strings.ReplaceAll(sample(r), "-", "."),
			} {
				if strings.EqualFold(look, sample(r)) {
					continue
				}
				if got := observed(look); got != nowhere {
					t.Errorf("%s goes %q", look, got)
				}
			}
		})
	}
	for name := range want {
		t.Errorf("there is no row %s", name)
	}
	for _, name := range []string{"Traceparent", "X-Tenant", "Mcpx", "X-Forwarded", "x_tenant", "Www-Authenticate", "Access-Control-Sample"} {
		if got := observed(name); got != "made passed configured" {
			t.Errorf("%s goes %q", name, got)
		}
	}
}

// observed says which ways a field goes, by trying them.
func observed(name string) string {
	var out []string
	withMade, withPassed := up(&Policy{}, http.Header{name: {"v"}}, name)
	if withMade != nil {
		out = append(out, "made")
	}
	if withPassed != nil {
		out = append(out, "passed")
	}
	if !Reserved(name) {
		out = append(out, "configured")
	}
	return strings.Join(out, " ")
}

// RFC 9110 7.6.1: what Connection names belongs to the connection.
func TestWhatConnectionNamesDoesNotCross(t *testing.T) {
	h := func() http.Header {
		return http.Header{"Connection": {"close, X-Hop", "x-other"}, "X-Hop": {"1"}, "X-Other": {"1"}, "X-Stays": {"1"}}
	}
	for _, name := range []string{"X-Hop", "X-Other", "X-Stays"} {
		withMade, withPassed := up(&Policy{}, h(), name)
		stays := name == "X-Stays"
		if (withMade != nil) != stays || (withPassed != nil) != stays {
			t.Errorf("%s: made %q, passed %q", name, withMade, withPassed)
		}
	}
	response := http.Response{Header: h()}
	if Down(&response); response.Header.Get("X-Stays") == "" || response.Header.Get("X-Hop")+response.Header.Get("X-Other") != "" {
		t.Errorf("%v", response.Header)
	}
}

func TestConfiguredFieldsWin(t *testing.T) {
	p := &Policy{Header: http.Header{"X-Key": {"ours"}, "Cookie": {"a=b"}, "User-Agent": {"agent"}, "Authorization": {"Bearer ours"}, "Upgrade": {"h2c"}}}
	client := http.Header{"X-Key": {"theirs"}, "X_key": {"theirs"}, "x.key": {"theirs"}, "Cookie": {"c=d"}, "Authorization": {"Bearer theirs"},
		"User-Agent": {"theirs"}, "X-Other": {"1"}}
	all := map[string]string{}
	p.Made(client, func(n, v string) { all[n] += v })
	p.Configured(func(n, v string) { all[n] += v })
	if want := map[string]string{"X-Key": "ours", "Cookie": "a=b", "X-Other": "1"}; !maps.Equal(all, want) {
		t.Errorf("made: %v", all)
	}
	if got := p.UserAgent("bridge"); got != "agent" {
		t.Errorf("User-Agent %q", got)
	}
	p.Pass(client)
	want := http.Header{"X-Key": {"ours"}, "Cookie": {"a=b"}, "User-Agent": {"agent"}, "Authorization": {"Bearer ours"}, "X-Other": {"1"}}
	if !maps.EqualFunc(client, want, slices.Equal) {
		t.Errorf("passed: %v", client)
	}
}

func TestCredentials(t *testing.T) {
	configured := http.Header{"Authorization": {"Bearer ours"}}
	for _, tc := range []struct {
		policy       Policy
		client, want string
		keeps        bool
	}{
		{Policy{}, "Bearer theirs", "Bearer theirs", false},
		{Policy{}, "Bearer\r\nX: y", "", false},
		{Policy{}, "", "", false},
		{Policy{DropAuthorization: true}, "Bearer theirs", "", true},
		{Policy{Header: configured}, "Bearer theirs", "Bearer ours", true},
		{Policy{Header: configured}, "", "Bearer ours", true},
		{Policy{Header: configured, DropAuthorization: true}, "Bearer theirs", "Bearer ours", true},
	} {
		if got := tc.policy.Authorization(tc.client); got != tc.want || tc.policy.KeepsCredentials() != tc.keeps {
			t.Errorf("%+v: %q, keeps %v", tc, got, tc.policy.KeepsCredentials())
		}
		if tc.client == "" || strings.Contains(tc.client, "\r") {
			continue // net/http refuses the one, and there is nothing to pass of the other
		}
		h := http.Header{"Authorization": {tc.client, "Bearer second"}}
		tc.policy.Pass(h)
		if got := strings.Join(h["Authorization"], ","); got != tc.want {
			t.Errorf("%+v passes %q", tc, got)
		}
	}
}

func TestOneValueOfWhatSaysOneThing(t *testing.T) {
	h := http.Header{"Mcp-Name": {"a", "b"}, "Accept": {"a", "b"}, "X-Any": {"a", "b"}}
	(&Policy{}).Pass(h)
	if len(h["Mcp-Name"]) != 1 || h["Mcp-Name"][0] != "a" || len(h["Accept"]) != 2 || len(h["X-Any"]) != 2 {
		t.Errorf("%v", h)
	}
}

// ofProxies are fields in which proxies tell the client's address or what they were asked.
var ofProxies = []string{
	"Cf-Connecting-", "Cf-Visitor", "Client-Ip", "Cloudfront-Forwarded-Proto", "Cloudfront-Viewer-Address", "Fastly-Client-Ip", "Fly-Client-Ip", "Front-End-Https",
	"Remote-Addr", "True-Client-Ip", "Wl-Proxy-", "X-Appengine-", "X-Arr-Ssl",
	"X-Azure-Clientip", "X-Azure-Socketip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Envoy-", "X-Http-Method", "X-Http-Method-Override",
	"X-Method-Override", "X-Original-", "X-Remote-Addr", "X-Remote-Ip", "X-Rewrite-Url",
	"X-Scheme", "X-Url-Scheme",
}

// ofUsers are fields in which proxies tell who has signed in.
var ofUsers = []string{
	"Cf-Access-Authenticated-User-Email", "Cf-Access-Jwt-Assertion", "Client-Cert", "Client-Cert-Chain", "Gap-", "Oidc-Claim-", "Remote-", "Ssl-Client-",
	"Tailscale-User-", "X-Amzn-Mtls-", "X-Amzn-Oidc-", "X-Apigateway-Api-Userinfo", "X-Arr-Clientcert",
	"X-Auth-Email", "X-Auth-Request-", "X-Auth-User", "X-Auth-Username", "X-Authenticated-", "X-Authentik-", "X-Client-Cert",
	"X-Consumer-Custom-Id", "X-Consumer-Groups", "X-Consumer-Id", "X-Consumer-Username", "X-Credential-Identifier", "X-Endpoint-Api-Userinfo", "X-Goog-Authenticated-User-", "X-Goog-Iap-Jwt-Assertion",
	"X-Ms-Client-Principal", "X-Ms-Client-Principal-", "X-Ms-Token-", "X-Pomerium-", "X-Remote-", "X-Ssl-", "X-Userinfo", "X-Vouch-", "X-Webauth-",
}

// Each spelling of what only proxies may say ends at the edge, unless the peer is one
// that is trusted and says who has signed in.
func TestWhatOnlyProxiesMaySay_H12(t *testing.T) {
	for _, r := range table {
		name := textproto.CanonicalMIMEHeaderKey(sample(r))
		isUser := slices.Contains(ofUsers, r.name)
		isAddress := isUser || slices.Contains(ofProxies, r.name) || slices.Contains([]string{"Forwarded", "X-Forwarded-", "X-Real-Ip"}, r.name)
		for _, look := range []string{name, textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "-", "_")), strings.ReplaceAll(name, "-", ".")} {
			if SpeaksOfClient(look, false) != isAddress || SpeaksOfClient(look, true) != (isAddress && !isUser) {
				t.Errorf("%s: %v, of a trusted peer %v", look, SpeaksOfClient(look, false), SpeaksOfClient(look, true))
			}
		}
	}
	for _, own := range []string{"Cf-Access-Client-Id", "X-Goog-Api-Key", "X-Auth-Token", "X-Consumer", "X-Amzn-Trace-Id", "X-User-Id", "Content-Type", "X",
		"Cf-Ray", "Cloudfront-Viewer-Country", "Viable", "Via", "Gap"} {
		if SpeaksOfClient(own, false) {
			t.Errorf("%s does not pass", own)
		}
	}
}

func TestWhoProxiesSpeakFor(t *testing.T) {
	for name, want := range map[string]bool{
		"X-Forwarded-For": true, "X-Forwarded-Anything": true, "Forwarded": true, "X-Real-Ip": true,
		"X_forwarded_for": true, "X-Real_ip": true, "X-Forward": false, "X-Real": false, "From": false, "": false,
	} {
		if got := SpeaksOfClient(name, true); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Whatever breaks a message is left out.
func TestB26FieldsThatAreNeverTakenOver(t *testing.T) {
	h := http.Header{"Traceparent": {"00-1-2-01"}, "x-own": {"a", "b"}, "Mcp-Name": {"spoofed"}, "mcp-param-x": {"spoofed"}, "Cookie": {"c"},
		"Origin": {"o"}, "Content-Length": {"9"}, "Authorization": {"stolen"}, "Host": {"h"}, "Bad Name": {"x"}, "X-Bad": {"a\r\nb"}, "Proxy-Authorization": {"p"}}
	var got []string
	(&Policy{}).Made(h, func(name, value string) { got = append(got, name+" "+value) })
	slices.Sort(got)
	if want := []string{"Traceparent 00-1-2-01", "x-own a", "x-own b"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestPersonalFields(t *testing.T) {
	got := map[string]string{}
	Personal(http.Header{"x-tenant": {"a"}, "Traceparent": {"b"}, "User-Agent": {"c"}, "Cookie": {"d"}, "Connection": {"x-hop"}, "X-Hop": {"e"}},
		func(n, v string) { got[n] = v })
	if want := map[string]string{"X-Tenant": "a"}; !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestWhatLastsOfAHeader(t *testing.T) {
	h := http.Header{"X-Tenant": {"a:b ", "\xe9"}, "x-user": {"ada"}, "Traceparent": {"b"}, "X-Amzn-Trace-Id": {"c"}, "Accept": {"d"}, "X-Bad": {"e\nX-User: eve"}}
	lines := Lasting(h)
	want := http.Header{"X-Tenant": {"a:b ", "\xe9"}, "X-User": {"ada"}}
	if got := Lasted(lines); !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	if Audience("p", h) != Audience("p", want) || Audience("p", h) == Audience("p", nil) {
		t.Error("what lasts tells of another audience")
	}
	if got := Audience("p", http.Header{"Accept": {"a"}, "Traceparent": {"b"}}); got != "p" || Lasting(http.Header{"Accept": {"a"}}) != nil || Lasted(nil) != nil {
		t.Errorf("a client without headers of its own is %q", got)
	}
}

// A person is the same with each request, whatever proxies make anew for it, and nobody else can say to be one.
func TestAPersonStaysTheSame(t *testing.T) {
	// {"iss":"p","sub":"ada","iat":1} and 2, {"iss":"p","sub":"bob"}, {"iat":1}
	const ada1, ada2, bob, nobody = "e30.eyJpc3MiOiJwIiwic3ViIjoiYWRhIiwiaWF0IjoxfQ==.x", "e30.eyJpc3MiOiJwIiwic3ViIjoiYWRhIiwiaWF0IjoyfQ.y",
		"e30.eyJpc3MiOiJwIiwic3ViIjoiYm9iIn0.x", "e30.eyJpYXQiOjF9.x"
	same := func(a, b http.Header) bool { return Person("p", a) == Person("p", b) }
	header := func(name, value string) http.Header { return http.Header{name: {value}} }
	for _, name := range []string{"X-Amzn-Oidc-Data", "X-Goog-Iap-Jwt-Assertion", "x-pomerium-jwt-assertion"} {
		if !same(header(name, ada1), header(name, ada2)) {
			t.Errorf("%s of one person is another's", name)
		}
		if same(header(name, ada1), header(name, bob)) || same(header(name, nobody), header(name, nobody+"x")) || same(header(name, ada1), nil) {
			t.Errorf("%s of two people is the same", name)
		}
	}
	if same(header("X-Own-Jwt", ada1), header("X-Own-Jwt", ada2)) {
		t.Error("a token that anybody may have written counts by what it claims")
	}
	if !same(http.Header{"X-Kong-Request-Id": {"1"}, "X-Amz-Cf-Id": {"1"}, "X-Trace-Id": {"1"}, "X-User": {"ada"}}, http.Header{"X-Trace-Id": {"2"}, "X-User": {"ada"}}) {
		t.Error("the number of a request counts")
	}
	if Person("p", header("X-User", "ada")) != Audience("p", header("X-User", "ada")) || Person("p", nil) != "p" {
		t.Error("without a token it is no audience")
	}
}

func BenchmarkMade(b *testing.B) {
	h := http.Header{"Accept": {"a"}, "Content-Type": {"b"}, "Mcp-Session-Id": {"c"}, "Mcp-Protocol-Version": {"d"}, "User-Agent": {"e"},
		"Authorization": {"f"}, "Connection": {"keep-alive"}, "Traceparent": {"g"}}
	p := &Policy{}
	b.ReportAllocs()
	for b.Loop() {
		p.Made(h, func(string, string) {})
	}
}
