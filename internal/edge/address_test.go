package edge

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// trusting makes the proxies of these networks; unix stands for a Unix socket.
func trusting(list []string) (p Proxies) {
	for _, text := range list {
		if text == "unix" {
			p.Unix = true
			continue
		}
		p.Networks = append(p.Networks, netip.MustParsePrefix(text))
	}
	return p
}

func TestClientAddressesAreBelievedOnlyOfTrustedProxies_H12(t *testing.T) {
	for _, tc := range []struct {
		name, peer string
		trusted    []string
		header     http.Header
		want       string
	}{
		{"nobody is trusted", "10.0.0.1:5", nil, http.Header{"X-Forwarded-For": {"1.2.3.4"}}, "10.0.0.1:0"},
		{"another is trusted", "10.0.0.1:5", []string{"192.0.2.0/24"}, http.Header{"X-Forwarded-For": {"1.2.3.4"}}, "10.0.0.1:0"},
		{"trusted", "10.0.0.1:5", []string{"10.0.0.0/8"}, http.Header{"X-Forwarded-For": {"1.2.3.4"}}, "1.2.3.4:0"},
		{"trusted, silent", "10.0.0.1:5", []string{"10.0.0.0/8"}, http.Header{}, "10.0.0.1:0"},
		{"trusted as IPv4 in IPv6", "[::ffff:10.0.0.1]:5", []string{"10.0.0.0/8"}, http.Header{"X-Forwarded-For": {"1.2.3.4"}}, "1.2.3.4:0"},
		{"chain of proxies", "10.0.0.1:5", []string{"10.0.0.0/8"}, http.Header{"X-Forwarded-For": {"1.2.3.4, 10.0.0.3", "10.0.0.2"}}, "1.2.3.4:0"},
		{"invention before the chain", "10.0.0.1:5", []string{"10.0.0.0/8"}, http.Header{"X-Forwarded-For": {"6.6.6.6, 1.2.3.4, 10.0.0.2"}}, "1.2.3.4:0"},
		{"nonsense", "10.0.0.1:5", []string{"10.0.0.0/8"}, http.Header{"X-Forwarded-For": {"1.2.3.4, who knows"}}, "10.0.0.1:0"},
		{"port", "10.0.0.1:5", []string{"10.0.0.0/8"}, http.Header{"X-Forwarded-For": {"1.2.3.4:77"}}, "1.2.3.4:77"},
		{"Forwarded", "10.0.0.1:5", []string{"10.0.0.1/32"}, http.Header{"Forwarded": {`for=6.6.6.6, For="[2001:db8::17]:4711";proto=https`}}, "[2001:db8::17]:4711"},
		{"Forwarded, hidden", "10.0.0.1:5", []string{"10.0.0.1/32"}, http.Header{"Forwarded": {`for=_secret`}}, "10.0.0.1:0"},
		{"Forwarded, hidden port", "10.0.0.1:5", []string{"10.0.0.1/32"}, http.Header{"Forwarded": {`for="1.2.3.4:_x"`}}, "1.2.3.4:0"},
		{"both, the same", "10.0.0.1:5", []string{"10.0.0.1/32"}, http.Header{"Forwarded": {"for=1.2.3.4"}, "X-Forwarded-For": {"1.2.3.4"}}, "1.2.3.4:0"},
		{"both, one is the client's own", "10.0.0.1:5", []string{"10.0.0.1/32"}, http.Header{"Forwarded": {"for=6.6.6.6"}, "X-Forwarded-For": {"1.2.3.4"}}, "10.0.0.1:0"},
		{"Unix socket", "@", []string{"unix"}, http.Header{"X-Forwarded-For": {"1.2.3.4"}}, "1.2.3.4:0"},
		{"Unix socket, not trusted", "@", []string{"10.0.0.0/8"}, http.Header{"X-Forwarded-For": {"1.2.3.4"}}, "@"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
			r.RemoteAddr, r.Header = tc.peer, tc.header
			r.Header.Set("X-Forwarded-Host", "evil.example")
			r.Header.Set("X-Real-Ip", "6.6.6.6")
			r.Header.Set("Cf-Connecting-Ip", "6.6.6.6")
			r.Header.Set("X-Original-Url", "/admin")
			r.Header.Set("X-Kept", "yes")
			handler := newAddresses(trusting(tc.trusted), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.RemoteAddr != tc.want {
					t.Errorf("the client is %s, want %s", r.RemoteAddr, tc.want)
				}
				if len(r.Header) != 1 || r.Header.Get("X-Kept") != "yes" {
					t.Errorf("headers %v go on", r.Header)
				}
			}), zerolog.Nop())
			handler.ServeHTTP(httptest.NewRecorder(), r)
		})
	}
}

// TestThePortIsThatOfAClientsOwnConnection: of a connection that a proxy has for many there is none.
func TestThePortIsThatOfAClientsOwnConnection(t *testing.T) {
	for name, tc := range map[string]struct{ peer, forwarded, want string }{
		"a client":           {"192.0.2.1:5", "", "192.0.2.1:5"},
		"somebody's proxy":   {"192.0.2.1:5", "1.2.3.4", "192.0.2.1:0"},
		"a silent proxy":     {"10.0.0.1:5", "", "10.0.0.1:0"},
		"what a proxy says":  {"10.0.0.1:5", "1.2.3.4:7", "1.2.3.4:7"},
		"over IPv6":          {"[2001:db8::1]:5", "1.2.3.4", "[2001:db8::1]:0"},
		"over a Unix socket": {"@", "1.2.3.4", "@"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		r.RemoteAddr = tc.peer
		if tc.forwarded != "" {
			r.Header.Set("X-Forwarded-For", tc.forwarded)
		}
		newAddresses(trusting([]string{"10.0.0.0/8"}), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.RemoteAddr != tc.want {
				t.Errorf("%s: %s, want %s", name, r.RemoteAddr, tc.want)
			}
		}), zerolog.Nop()).ServeHTTP(httptest.NewRecorder(), r)
	}
}

// Who has signed in at a proxy is told by those that are trusted only.
func TestUsersAreToldByTrustedProxiesOnly_H12(t *testing.T) {
	for peer, want := range map[string]int{"10.0.0.1:5": 4, "192.0.2.1:5": 1} {
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		r.RemoteAddr = peer
		r.Header = http.Header{
			"X-Forwarded-For": {"1.2.3.4"}, "Remote-User": {"ada"}, "X-Auth-Request-Email": {"ada@example.com"}, "X-Remote-User": {"ada"},
			"X-Remote-Addr": {"6.6.6.6"}, "Cf-Access-Client-Id": {"id"},
		}
		newAddresses(trusting([]string{"10.0.0.0/8"}), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if len(r.Header) != want || r.Header.Get("Cf-Access-Client-Id") != "id" {
				t.Errorf("of %s: %v", peer, r.Header)
			}
		}), zerolog.Nop()).ServeHTTP(httptest.NewRecorder(), r)
	}
}

func FuzzClientAddress(f *testing.F) {
	f.Add("1.2.3.4, 10.0.0.1", `for="[::1]:x";by=_a`)
	p := trusting([]string{"10.0.0.0/8", "::1/128"})
	f.Fuzz(func(t *testing.T, listed, standard string) {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.RemoteAddr, r.Header = "10.0.0.9:1", http.Header{"X-Forwarded-For": {listed}, "Forwarded": {standard}}
		if client := p.client(r); client.IsValid() && !client.Addr().IsValid() {
			t.Errorf("%q and %q give %v", listed, standard, client)
		}
	})
}

func TestTheLogHasNoLinkToAQuestion(t *testing.T) {
	var log bytes.Buffer
	h := newAddresses(Proxies{}, http.NotFoundHandler(), zerolog.New(&log))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/questions/q/7L5TS7KIHEU4DL6GQPFDTRZLDL", nil))
	if text := log.String(); !strings.Contains(text, `"path":"/questions/q/7L5TS7KI…"`) {
		t.Error(text)
	}
}
