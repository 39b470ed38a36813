// Package hop is the policy of what crosses the bridge besides messages: which
// header fields and credentials of a client reach the server, which of a
// server's reach the client, and which may be configured. It is one table for what
// goes to servers, one for what comes from them, and the few functions that apply them. Translating, relaying and passing on, the edge
// and the checks of the configuration use it alike (B-26, H-1, H-12).
package hop

import (
	"net/textproto"
	"strings"

	"github.com/mcpbridge/bridge/internal/http1"
)

// way is a set of ways that a field may go.
type way uint8

const (
	// made: from a client, with a message that the bridge makes of the client's:
	// translated or relayed.
	made way = 1 << iota
	// passed: from a client, with a message that is passed on unchanged.
	passed
	// configured: from the configuration, with every request.
	configured
	// single is no way: such a field says one thing, and only its first value goes
	// up with a message that is passed on. It is the one that the bridge has read.
	single
	// address is no way: proxies tell in such a field whom they speak for, or what they
	// were asked, and the bridge alone believes them.
	address
	// user is no way: proxies tell in such a field who has signed in. It goes on only
	// from those whom the operator trusts.
	user
)

// everywhere is how fields go that are not listed.
const everywhere = made | passed | configured

// row says which ways one field goes, or all those that begin with a name that
// ends in a hyphen.
type row struct {
	name string // in canonical form
	ways way
}

// table lists the fields that do not go everywhere.
var table = []row{
	// What belongs to a connection and to the framing of a message on it.
	{"Connection", 0},
	{"Content-Length", passed},
	{"Expect", 0},
	{"Host", 0},
	{"Http2-Settings", 0},
	{"Keep-Alive", 0},
	{"Proxy-Connection", 0},
	{"Te", 0},
	{"Trailer", 0},
	{"Transfer-Encoding", 0},
	{"Upgrade", 0},

	// What is about the message that is passed on; the bridge has its own for those
	// that it makes.
	{"Accept", passed},
	{"Accept-Encoding", passed},
	{"Content-Encoding", passed},
	{"Content-Type", passed | single},
	{"Last-Event-Id", passed | single},
	{"Mcp-", passed | single},
	{"User-Agent", passed | configured | single},

	// Who sends it: credentials go by Policy.Authorization, the others speak about the
	// hop to the bridge and must not be believed on the next one.
	{"Authorization", passed | configured | single},
	{"Cookie", configured},
	{"Forwarded", configured | address},
	{"Origin", configured},
	{"Proxy", configured}, // CGI programs take it for the proxy that they are to use
	{"Proxy-", configured},
	{"Sec-", configured},
	{"Via", configured}, // by which the bridge itself knows a proxy's connection
	{"X-Forwarded-", configured | address},
	{"X-Real-Ip", configured | address},

	// The same in the words of one proxy or another, and of frameworks that let a field
	// take the place of the method or the path which was checked.
	{"Cf-Connecting-", configured | address},
	{"Cf-Visitor", configured | address},
	{"Client-Ip", configured | address},
	{"Cloudfront-Forwarded-Proto", configured | address},
	{"Cloudfront-Viewer-Address", configured | address},
	{"Fastly-Client-Ip", configured | address},
	{"Fly-Client-Ip", configured | address},
	{"Front-End-Https", configured | address},
	{"Remote-Addr", configured | address},
	{"True-Client-Ip", configured | address},
	{"Wl-Proxy-", configured | address},
	{"X-Appengine-", configured | address},
	{"X-Arr-Ssl", configured | address},
	{"X-Azure-Clientip", configured | address},
	{"X-Azure-Socketip", configured | address},
	{"X-Client-Ip", configured | address},
	{"X-Cluster-Client-Ip", configured | address},
	{"X-Envoy-", configured | address},
	{"X-Http-Method", configured | address},
	{"X-Http-Method-Override", configured | address},
	{"X-Method-Override", configured | address},
	{"X-Original-", configured | address},
	{"X-Remote-Addr", configured | address},
	{"X-Remote-Ip", configured | address},
	{"X-Rewrite-Url", configured | address},
	{"X-Scheme", configured | address},
	{"X-Url-Scheme", configured | address},

	// Who has signed in at a proxy. (Cf-Access-Client-Id and its like are credentials of
	// a client's own.)
	{"Cf-Access-Authenticated-User-Email", everywhere | user},
	{"Cf-Access-Jwt-Assertion", everywhere | user},
	{"Client-Cert", everywhere | user}, // RFC 9440
	{"Client-Cert-Chain", everywhere | user},
	{"Gap-", everywhere | user},        // oauth2-proxy's older names
	{"Oidc-Claim-", everywhere | user}, // mod_auth_openidc
	{"Remote-", everywhere | user},     // Authelia; CGI's REMOTE_USER
	{"Ssl-Client-", everywhere | user},
	{"Tailscale-User-", everywhere | user},
	{"X-Amzn-Mtls-", everywhere | user},
	{"X-Amzn-Oidc-", everywhere | user},
	{"X-Apigateway-Api-Userinfo", everywhere | user},
	{"X-Arr-Clientcert", everywhere | user},
	{"X-Auth-Email", everywhere | user},
	{"X-Auth-Request-", everywhere | user}, // oauth2-proxy
	{"X-Auth-User", everywhere | user},
	{"X-Auth-Username", everywhere | user},
	{"X-Authenticated-", everywhere | user},
	{"X-Authentik-", everywhere | user},
	{"X-Client-Cert", everywhere | user},
	{"X-Consumer-Custom-Id", everywhere | user}, // Kong
	{"X-Consumer-Groups", everywhere | user},
	{"X-Consumer-Id", everywhere | user},
	{"X-Consumer-Username", everywhere | user},
	{"X-Credential-Identifier", everywhere | user}, // Kong, too
	{"X-Endpoint-Api-Userinfo", everywhere | user}, // X-Apigateway-Api-Userinfo's older name
	{"X-Goog-Authenticated-User-", everywhere | user},
	{"X-Goog-Iap-Jwt-Assertion", everywhere | user},
	{"X-Ms-Client-Principal", everywhere | user},
	{"X-Ms-Client-Principal-", everywhere | user},
	{"X-Ms-Token-", everywhere | user},
	{"X-Pomerium-", everywhere | user},
	{"X-Remote-", everywhere | user},
	{"X-Ssl-", everywhere | user},
	{"X-Userinfo", everywhere | user}, // Kong, APISIX
	{"X-Vouch-", everywhere | user},
	{"X-Webauth-", everywhere | user},
}

// usual lists fields that nearly every message of a client has and that a row with a hyphen
// covers: they are found at the first look, too, like those that are impersonal.
var usual = []string{"Mcp-Protocol-Version", "Mcp-Session-Id", "Sec-Fetch-Mode"}

var (
	exact    = map[string]way{}
	prefixes []row
	begins   [128][128]bool // the first two letters of fields in which proxies speak
)

func init() {
	for _, r := range table {
		if r.ways&(address|user) != 0 {
			begins[r.name[0]][r.name[1]] = true
		}
		if strings.HasSuffix(r.name, "-") {
			prefixes = append(prefixes, r)
		} else {
			exact[r.name] = r.ways
		}
	}
	for _, name := range usual {
		exact[name], _ = listedWays(name)
	}
	for name := range impersonal {
		if _, listed := listedWays(name); !listed {
			exact[name] = everywhere
		}
	}
}

// ways returns which ways a field goes. A name that servers behind CGI, WSGI and
// their like cannot tell from a listed one goes none: they read X_Real_Ip as
// X-Real-Ip.
func ways(name string) way {
	if w, listed := exact[name]; listed {
		return w
	}
	folded := fold(name)
	w, listed := listedWays(folded)
	switch {
	case !listed:
		return everywhere
	case folded != name && !strings.EqualFold(name, folded):
		return 0
	}
	return w
}

func listedWays(canonical string) (w way, listed bool) {
	if w, listed = exact[canonical]; listed {
		return w, true
	}
	for _, r := range prefixes {
		if strings.HasPrefix(canonical, r.name) {
			return r.ways, true
		}
	}
	return 0, false
}

// fold returns the canonical form of all names that a server may take for the
// same: in any case, and with any punctuation in the place of hyphens. The usual
// ones cost no memory.
func fold(name string) string {
	upper := true
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' && !upper || c >= 'A' && c <= 'Z' && upper
		if !letter && c != '-' && (c < '0' || c > '9') {
			return textproto.CanonicalMIMEHeaderKey(strings.Map(hyphenate, name))
		}
		upper = c == '-'
	}
	return name
}

func hyphenate(c rune) rune {
	if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
		return c
	}
	return '-'
}

// Reserved reports whether the bridge alone decides about a field, so that it
// cannot be configured.
func Reserved(name string) bool { return ways(name)&configured == 0 }

// SpeaksOfClient reports whether a field is one in which proxies tell whom they
// speak for, in any spelling that a server may take for it, and which stays here: who
// has signed in may be told by a peer that is trusted. The name is in canonical form.
func SpeaksOfClient(name string, trusted bool) bool {
	if len(name) < 2 || name[0] >= 128 || name[1] >= 128 || !begins[name[0]][hyphenate(rune(name[1]))] {
		return false // at the first glance
	}
	w, _ := listedWays(fold(name))
	return w&address != 0 || w&user != 0 && !trusted
}

// named reports whether a Connection field names another one, which then belongs
// to the connection.
func named(connection []string, name string) bool {
	for _, v := range connection {
		if http1.HasElement(v, name) {
			return true
		}
	}
	return false
}
