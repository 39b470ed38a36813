package hop

import (
	"fmt"
	"net/http"

	"github.com/mcpbridge/bridge/internal/http1"
)

// Policy is what an operator decided about one server. It must not be changed
// while it is used.
type Policy struct {
	// Header goes with every request, in place of what a client sends under the
	// same names. Authorization among it keeps clients' credentials here.
	Header http.Header
	// DropAuthorization keeps clients' credentials from the server.
	DropAuthorization bool
}

// KeepsCredentials reports whether no credentials of a client reach the server,
// whose acceptance of a request then proves nothing about them.
func (p *Policy) KeepsCredentials() bool {
	return p.DropAuthorization || p.configured("Authorization") != ""
}

// configured returns the configured field of a name in canonical form.
func (p *Policy) configured(name string) string {
	if v := p.Header[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// Authorization returns the credentials for a request of a client with its own;
// "" for none (H-1).
func (p *Policy) Authorization(client string) string {
	auth := client
	if own := p.configured("Authorization"); own != "" {
		auth = own
	} else if p.DropAuthorization {
		auth = ""
	}
	if !http1.IsValue(auth) {
		return ""
	}
	return auth
}

// Refused words that the server refused a request with a client's own Authorization for its credentials, and what
// can be done. own reports that they are those of the configuration, in place of which nobody else's can go.
func (p *Policy) Refused(status int, client string) (text string, own bool) {
	switch {
	case p.configured("Authorization") != "":
		return fmt.Sprintf("refused the configured Authorization (HTTP %d): correct it in BRIDGE_HEADERS, or wherever headers is set", status), true
	case p.Authorization(client) != "":
		return fmt.Sprintf("refused the credentials that came with the request (HTTP %d)", status), false
	}
	return fmt.Sprintf("wants a sign-in (HTTP %d): start the bridge with --auth.mode agent, or give it a token in BRIDGE_HEADERS, as Authorization: Bearer TOKEN", status), false
}

// UserAgent returns the one User-Agent of the messages that the bridge makes.
func (p *Policy) UserAgent(own string) string {
	if v := p.configured("User-Agent"); v != "" {
		return v
	}
	return own
}

// Made passes the fields of a client that go up with a message which the bridge
// makes to add. Values that would break the message are left out.
func (p *Policy) Made(client http.Header, add func(name, value string)) {
	connection := client["Connection"]
	for name, values := range client {
		if ways(name)&made == 0 || !http1.IsToken(name) || p.replaces(name) || named(connection, name) {
			continue
		}
		for _, v := range values {
			if http1.IsValue(v) {
				add(name, v)
			}
		}
	}
}

// Configured passes the configured fields to add, except for those that Authorization
// and UserAgent tell.
func (p *Policy) Configured(add func(name, value string)) {
	for name, values := range p.Header {
		if Reserved(name) || name == "Authorization" || name == "User-Agent" {
			continue
		}
		for _, v := range values {
			if http1.IsValue(v) {
				add(name, v)
			}
		}
	}
}

// replaces reports whether a configured field takes the place of a client's, in
// any spelling that the server may take for it.
func (p *Policy) replaces(name string) bool {
	if len(p.Header) == 0 {
		return false
	}
	name = fold(name)
	for own := range p.Header {
		if fold(own) == name {
			return true
		}
	}
	return false
}

// Pass edits the fields of a client's request that is passed on unchanged.
func (p *Policy) Pass(h http.Header) {
	connection := h["Connection"]
	for name, values := range h {
		switch w := ways(name); {
		case w&passed == 0 || p.replaces(name) || named(connection, name):
			delete(h, name)
		case w&single != 0 && len(values) > 1:
			h[name] = values[:1]
		}
	}
	if p.DropAuthorization {
		delete(h, "Authorization")
	}
	for name, values := range p.Header {
		if !Reserved(name) {
			h[name] = values
		}
	}
}
