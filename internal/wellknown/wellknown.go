// Package wellknown knows where the metadata of OAuth are found (RFC 9728 of
// protected resources, RFC 8414 and OpenID of authorization servers), and reads
// them. What they say is judged by its users.
package wellknown

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	exact "github.com/go-jose/go-jose/v4/json"
)

// Paths below which metadata are found at an origin.
const (
	Resource = "/.well-known/oauth-protected-resource"
	Issuer   = "/.well-known/oauth-authorization-server"
	OpenID   = "/.well-known/openid-configuration"
)

// Origin returns scheme and host of a URL, without a slash at the end; "" for what
// is none.
func Origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// ResourcePlaces lists where the metadata of a server may be, in the protocol's
// order: where its challenge says, if it does, at the server's own path, at the root.
func ResourcePlaces(named, server string) []string {
	u, err := url.Parse(server)
	if err != nil {
		return nil
	}
	root := u.Scheme + "://" + u.Host + Resource
	var at []string
	if named != "" {
		at = append(at, named)
	}
	if p := strings.TrimSuffix(u.EscapedPath(), "/"); p != "" {
		at = append(at, root+p)
	}
	return append(at, root)
}

// IssuerPlaces lists where the metadata of an issuer may be, in the protocol's order.
func IssuerPlaces(issuer string) []string {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil
	}
	origin, path := u.Scheme+"://"+u.Host, strings.Trim(u.EscapedPath(), "/")
	if path == "" {
		return []string{origin + Issuer, origin + OpenID}
	}
	return []string{origin + Issuer + "/" + path, origin + OpenID + "/" + path, origin + "/" + path + OpenID}
}

// Names reports whether an identifier is a server's: its URL, or one above it on
// the same origin, which many servers use (RFC 9728, 3.3, and 8707, 2).
func Names(identifier, server string) bool {
	if identifier == server {
		return true
	}
	i, err := url.Parse(identifier)
	s, err2 := url.Parse(server)
	if err != nil || err2 != nil || i.Scheme != s.Scheme || i.Host != s.Host || i.RawQuery != "" {
		return false
	}
	above := strings.TrimSuffix(i.Path, "/")
	return s.Path == above || strings.HasPrefix(s.Path, above+"/")
}

// Secure refuses addresses to which nothing should be entrusted: plain http is
// only for this machine, and a user's name before the host's looks like a host to people. Empty is no address.
func Secure(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return errors.New("it is no URL")
	case u.User != nil:
		return errors.New("it has a user in it")
	case u.Scheme == "https" && u.Host != "":
		return nil
	case u.Scheme == "http" && IsLoopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%s://%s is not https", u.Scheme, u.Host)
}

// IsLoopback reports a name or address of this machine.
func IsLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// maxHops bounds how often one request is sent elsewhere.
const maxHops = 5

// ErrElsewhere is what Follow says of redirects that are not followed.
var ErrElsewhere = errors.New("it sends requests to another place, which the bridge does not follow")

// Follow is a CheckRedirect for what belongs to sign-ins. What is posted holds codes and
// secrets, and stays with whom it was meant for; what is read never leads to where nothing
// should be entrusted to, and metadata are only where metadata may be: else a server would
// choose what the bridge reads in its operator's network.
func Follow(r *http.Request, via []*http.Request) error {
	first := via[0].URL
	if len(via) > maxHops {
		return errors.New("it sends requests in circles")
	}
	if err := From(first.String(), r.URL.String()); err != nil {
		return err
	}
	if via[0].Method == http.MethodGet && !isWellKnown(first) || SameOrigin(first.String(), r.URL.String()) {
		return nil
	}
	if via[0].Method == http.MethodGet && isWellKnown(r.URL) && r.URL.RawQuery == "" {
		return nil
	}
	return ErrElsewhere
}

func isWellKnown(u *url.URL) bool { return strings.Contains(u.EscapedPath(), "/.well-known/") }

// From refuses what Secure does, and places on this machine that one elsewhere names:
// they are none of its business.
func From(base, address string) error {
	if err := Secure(address); err != nil {
		return err
	}
	u, err := url.Parse(address)
	b, err2 := url.Parse(base)
	if err == nil && err2 == nil && u.Scheme == "http" && !IsLoopback(b.Hostname()) {
		return fmt.Errorf("%s://%s is on this machine, and %s is not", u.Scheme, u.Host, b.Host)
	}
	return nil
}

// MaxDocument bounds a metadata document, in bytes.
const MaxDocument = 1 << 20

// Fetch reads a JSON document. The status is 0 when there was no response.
func Fetch(ctx context.Context, client *http.Client, at string, into any) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode, fmt.Errorf("HTTP %d", resp.StatusCode)
	}
	if err := exact.NewDecoder(io.LimitReader(resp.Body, MaxDocument)).Decode(into); err != nil {
		if late := (net.Error)(nil); errors.As(err, &late) && late.Timeout() || ctx.Err() != nil {
			return resp.StatusCode, errors.New("it does not come to an end in time")
		}
		return resp.StatusCode, errors.New("it is no JSON document")
	}
	return resp.StatusCode, nil
}

// Decode reads what a peer says of itself, by its names letter by letter, of which each may be
// there once. encoding/json takes "Issuer" for "issuer", and of two the last: who judges a
// document and who uses it would read two different ones.
func Decode(document []byte, into any) error { return exact.Unmarshal(document, into) }

// Reason is the innermost text of an error of a connection, without the URL,
// whose query may be nobody's business.
func Reason(err error) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	text := err.Error()
	if strings.HasPrefix(text, "failed to parse Location header") { // which net/http quotes
		return "it redirects to what is no URL"
	}
	return text
}
