package passthrough

import (
	"testing"
)

// TestClientsWithoutCredentialsAreOneOnTheirConnectionOnly: whoever calls himself what
// somebody else does gets nothing that is meant for that one.
func TestClientsWithoutCredentialsAreOneOnTheirConnectionOnly_C8(t *testing.T) {
	p := NewProcess(ProcessOptions{Server: &scripted{}})
	defer p.Close()
	type from struct{ remote, authorization, via, info string }
	name := func(f from) string {
		r := request("x/y", "", "")
		r.RemoteAddr = f.remote
		for header, value := range map[string]string{"Authorization": f.authorization, "Via": f.via} {
			if value != "" {
				r.Header.Set(header, value)
			}
		}
		return p.caller(r, []byte(`{"io.modelcontextprotocol/clientInfo":{"name":"`+f.info+`"}}`))
	}
	for text, tc := range map[string]struct {
		a, b from
		same bool
	}{
		"one connection":                  {from{"127.0.0.1:5", "", "", "c"}, from{"127.0.0.1:5", "", "", "c"}, true},
		"two of one address":              {from{"127.0.0.1:5", "", "", "c"}, from{"127.0.0.1:6", "", "", "c"}, false},
		"one connection, two clients":     {from{"127.0.0.1:5", "", "", "c"}, from{"127.0.0.1:5", "", "", "d"}, false},
		"a proxy that says so":            {from{"127.0.0.1:5", "", "1.1 p", "c"}, from{"127.0.0.1:5", "", "1.1 p", "c"}, false},
		"behind proxies":                  {from{"192.0.2.1:0", "", "", "c"}, from{"192.0.2.1:0", "", "", "c"}, false},
		"a Unix socket":                   {from{"@", "", "", "c"}, from{"@", "", "", "c"}, false},
		"credentials, two connections":    {from{"127.0.0.1:5", "Bearer a", "", "c"}, from{"127.0.0.1:6", "Bearer a", "", "c"}, true},
		"credentials, two proxies'":       {from{"192.0.2.1:0", "Bearer a", "1.1 p", "c"}, from{"192.0.2.1:0", "Bearer a", "1.1 p", "c"}, true},
		"other credentials":               {from{"127.0.0.1:5", "Bearer a", "", "c"}, from{"127.0.0.1:5", "Bearer b", "", "c"}, false},
		"credentials at another address":  {from{"192.0.2.1:5", "Bearer a", "", "c"}, from{"192.0.2.2:5", "Bearer a", "", "c"}, false},
		"credentials and without, as one": {from{"127.0.0.1:5", "Bearer a", "", "c"}, from{"127.0.0.1:5", "", "", "c"}, false},
	} {
		if a, b := name(tc.a), name(tc.b); (a == b) != tc.same {
			t.Errorf("%s: %q and %q", text, a, b)
		}
	}
}
