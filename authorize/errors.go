package authorize

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"golang.org/x/oauth2"

	"github.com/mcpbridge/bridge/internal/clip"
	"github.com/mcpbridge/bridge/internal/wellknown"
)

// Pending says that a person has to do something first. The same request succeeds
// when that is done.
type Pending struct {
	// Server is the host that wants a sign-in.
	Server string
	// URL is to be opened in a browser.
	URL string
	// Code is to be typed in there, if it is not empty.
	Code string
	// Opened reports whether a browser was asked to open it.
	Opened bool
}

func (p *Pending) Error() string {
	switch {
	case p.URL == "":
		return fmt.Sprintf("%s wants you to sign in. The sign-in is being prepared; try again in a moment.", p.Server)
	case p.Code != "":
		return fmt.Sprintf("%s wants you to sign in. Open %s on any device, enter the code %s, then try again.", p.Server, p.URL, p.Code)
	case p.Opened:
		return fmt.Sprintf("%s wants you to sign in. Your browser was asked to open the page; if it did not, open this address: %s — then try again.", p.Server, p.URL)
	}
	return fmt.Sprintf("%s wants you to sign in. Open this address in a browser on this machine, then try again: %s", p.Server, p.URL)
}

// Failure is a sign-in that came to nothing. Its text is for the person at the
// desktop and says what to do; no secret is in it.
type Failure struct {
	Text string
	Err  error
	// Passing reports a cause that may go away by itself.
	Passing bool
}

func (f *Failure) Error() string { return f.Text }

func (f *Failure) Unwrap() error { return f.Err }

func failf(err error, format string, args ...any) *Failure {
	return &Failure{Text: fmt.Sprintf(format, args...), Err: err}
}

// passing makes a Failure after which nothing was lost.
func passing(err error, format string, args ...any) *Failure {
	f := failf(err, format, args...)
	f.Passing = true
	return f
}

// ErrNoSignIn is behind the Failure of a sign-in to a server that names no authorization server and is none itself: unless it
// has refused somebody it wants no sign-in.
var ErrNoSignIn = errors.New("nothing says where to sign in")

// codeOf returns the error code of an authorization server's answer (RFC 6749,
// 5.2), "" where err is none.
func codeOf(err error) string {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return refused.ErrorCode
	}
	return ""
}

// refusedToken words why a token endpoint gave no token. The body of its answer
// is not shown: nobody knows what it quotes.
func refusedToken(issuer string, err error) *Failure {
	if own, ok := errors.AsType[*Failure](err); ok {
		return own
	}
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case errors.Is(err, wellknown.ErrElsewhere):
		return failf(err, "the authorization server %s wanted your sign-in sent to another place: that was not done, and nothing was lost; its operator should know", hostOf(issuer))
	case errors.Is(err, context.Canceled):
		return passing(err, "the sign-in at %s was stopped", hostOf(issuer))
	case !ok && !unreached(err):
		return passing(err, "the authorization server %s answered the request for a token with something else; nothing was lost, try again later, and tell its operator if it goes on", hostOf(issuer))
	case !ok:
		return passing(err, "the authorization server %s cannot be reached (%s); nothing was lost, try again later", hostOf(issuer), clip.Line(wellknown.Reason(err)))
	case refused.ErrorCode == "" && refused.Response != nil && (refused.Response.StatusCode >= 500 || refused.Response.StatusCode == http.StatusTooManyRequests):
		return passing(err, "the authorization server %s has a problem (HTTP %d); nothing was lost, try again later", hostOf(issuer), refused.Response.StatusCode)
	case refused.ErrorCode == "" && refused.Response != nil:
		return failf(err, "the authorization server %s refused (HTTP %d)", hostOf(issuer), refused.Response.StatusCode)
	case refused.ErrorCode == "temporarily_unavailable" || refused.ErrorCode == "server_error" || refused.ErrorCode == "slow_down":
		return passing(err, "the authorization server %s has a problem (%s); nothing was lost, try again later", hostOf(issuer), clip.Line(refused.ErrorCode))
	}
	return failf(err, "the authorization server %s refused: %s", hostOf(issuer), quote(refused.ErrorCode, refused.ErrorDescription))
}

// unreached reports whether an error is one of the way to a server, and not of its answer.
func unreached(err error) bool {
	_, way := errors.AsType[*url.Error](err)
	return way || errors.Is(err, context.DeadlineExceeded)
}

// quote joins an error code and its description.
func quote(code, description string) string {
	if description == "" {
		return clip.Line(code)
	}
	return clip.Line(code) + " (" + clip.Line(description) + ")"
}

// errStillborn says that a token was of no use from the start.
var errStillborn = errors.New("the token had expired when it was given")
