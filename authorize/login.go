package authorize

import "time"

// Login is what was got from one authorization server for one server. It is never
// changed: what renews it makes another.
type Login struct {
	Server   string `json:"server"`
	Resource string `json:"resource"`
	Issuer   string `json:"issuer"`
	// Requested and Granted are scopes; a step-up asks for the union of the first
	// and those that the server then wants.
	Requested []string  `json:"requested,omitempty"`
	Granted   []string  `json:"granted,omitempty"`
	Expires   time.Time `json:"expires,omitzero"` // the access token; zero: unknown
	Renew     time.Time `json:"renew,omitzero"`   // when to do so, somewhat before
	Updated   time.Time `json:"updated"`
	SignedIn  time.Time `json:"signedIn"` // not by a renewal

	TokenEndpoint string `json:"tokenEndpoint"`
	Revocation    string `json:"revocation,omitempty"`

	// Active reports whether there are tokens, Renews whether they can be renewed.
	Active bool `json:"active"`
	Renews bool `json:"renews"`

	secrets `json:"-"` // are kept apart
}

// secrets is the part of a login that is kept sealed.
type secrets struct {
	Client  client `json:"client"`
	Access  string `json:"access,omitempty"`
	Refresh string `json:"refresh,omitempty"`
	ID      string `json:"id,omitempty"`
}

// header is the Authorization to send, empty without a token.
func (l *Login) header() string {
	if l == nil || l.Access == "" {
		return ""
	}
	return "Bearer " + l.Access
}

// fresh reports whether the token can be sent without renewing it first.
func (l *Login) fresh(now time.Time) bool {
	return l.Access != "" && (l.Renew.IsZero() || now.Before(l.Renew))
}

// valid reports whether the token has not expired, as far as is known.
func (l *Login) valid(now time.Time) bool {
	return l.Access != "" && (l.Expires.IsZero() || now.Before(l.Expires))
}

// bare returns the login without tokens, and without the client too if that is
// no longer known to the authorization server.
func (l *Login) bare(keepClient bool) *Login {
	out := *l
	out.Access, out.Refresh, out.ID = "", "", ""
	out.Active, out.Renews = false, false
	out.Expires, out.Renew, out.Updated = time.Time{}, time.Time{}, time.Now().Round(0)
	if !keepClient {
		out.Client = client{}
	}
	return &out
}

// lately reports whether something happened a short time ago. What a clock that was wrong
// has put into the future did not.
func lately(then time.Time, ago time.Duration) bool { return time.Since(then).Abs() < ago }

// again is how soon tokens that were refused right after they were got are got in
// the same way once more.
const again = 30 * time.Second
