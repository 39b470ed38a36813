package authorize

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/oauth2"

	"github.com/mcpbridge/bridge/internal/clip"
	"github.com/mcpbridge/bridge/internal/wellknown"
)

// SignIn gets a new login, whatever there is: what a person asked for by command.
// challenge is what the server answered, empty if it did not refuse. show, which
// may be called several times, tells what to do.
func (a *Agent) SignIn(ctx context.Context, challenge []string, show func(Pending)) (*Login, error) {
	t := a.byCommand(challenge)
	t.shown = show
	if err := t.obtain(ctx); err != nil {
		return nil, err
	}
	return a.login.Load(), nil
}

// Paste is SignIn where no browser can come back to this machine: the person opens
// a page anywhere, and read returns the address at which it ended. It is asked again, and
// told why, until that is an address or read fails.
func (a *Agent) Paste(ctx context.Context, challenge []string, show func(Pending), read func(wrong error) (string, error)) (*Login, error) {
	t := a.byCommand(challenge)
	at, err := a.locate(ctx, &t.asked)
	if err != nil {
		return nil, err
	}
	all := a.opt.callbacks()
	c, err := a.client(ctx, at, all)
	if err != nil {
		return nil, err
	}
	p := a.begin(at, &c, all[0], t.scopes(at))
	if err := a.store.keepPending(p); err != nil {
		return nil, err
	}
	show(p.told(false))
	var wrong error
	for {
		text, err := read(wrong)
		if err != nil {
			return nil, err
		}
		var answer url.Values
		if answer, wrong = pasted(text); wrong == nil {
			return a.complete(ctx, answer)
		}
	}
}

// byCommand is an attempt that nothing but a command has caused.
func (a *Agent) byCommand(challenge []string) *attempt {
	refused := Refusal{Status: http.StatusUnauthorized, Challenge: challenge}
	t := &attempt{agent: a, refused: refused, asked: refused.read(), bidden: true, wantsTab: make(chan struct{}, 1)}
	if l := a.login.Load(); l != nil {
		t.over = &l.SignedIn
	}
	t.needTab()
	return t
}

// SignOut ends the login here and, where the authorization server has a way to be
// told so, there. It reports whether there was one. A *Failure with Passing says that all is
// over here, but not there.
func (a *Agent) SignOut(ctx context.Context) (bool, error) {
	unlock, err := a.store.lock(ctx)
	if err != nil {
		return false, err
	}
	defer unlock()
	l, err := a.store.newest(func(string) bool { return true })
	files, _ := a.store.Names(key(a.opt.Server), loginFile) // what is wrong with the place, remove tells
	had := l != nil || err != nil || len(files) > 0         // one that cannot be read is one
	var untold error
	if err == nil && l != nil {
		untold = a.revoke(ctx, l)
	}
	a.login.Store(nil)
	if err := a.store.remove(); err != nil {
		return had, failf(err, "the login cannot be removed: %v", err)
	}
	return had, untold
}

// revoke tells the authorization server (RFC 7009). Nothing depends on it: what
// is not known here any more is of no use to anybody.
func (a *Agent) revoke(ctx context.Context, l *Login) error {
	token, hint := l.Refresh, "refresh_token"
	if token == "" {
		token, hint = l.Access, "access_token"
	}
	if token == "" || l.Revocation == "" {
		return nil
	}
	if err := wellknown.From(l.Issuer, l.Revocation); err != nil {
		return untold(l, err.Error())
	}
	form := url.Values{"token": {token}, "token_type_hint": {hint}}
	if l.Client.style() == oauth2.AuthStyleInParams {
		form.Set("client_id", l.Client.ID)
		if l.Client.Method == methodPost {
			form.Set("client_secret", l.Client.Secret)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.Revocation, strings.NewReader(form.Encode()))
	if err != nil {
		return nil
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if l.Client.style() == oauth2.AuthStyleInHeader {
		req.SetBasicAuth(url.QueryEscape(l.Client.ID), url.QueryEscape(l.Client.Secret))
	}
	resp, err := a.opt.Issuers.Do(req)
	if err != nil {
		return untold(l, wellknown.Reason(err))
	}
	_ = resp.Body.Close()
	if resp.StatusCode >= 300 {
		return untold(l, fmt.Sprintf("HTTP %d", resp.StatusCode))
	}
	return nil
}

// untold words that a login goes on at its authorization server.
func untold(l *Login, cause string) error {
	return passing(nil, "%s could not be told (%s): there the login lasts until it expires, or until you end it in your account", hostOf(l.Issuer), clip.Line(cause))
}

// Note keeps what a program learnt of the server, for its next start. It is no
// secret. After Close nothing is kept.
func (a *Agent) Note(name string, content []byte) error {
	if err := a.ctx.Err(); err != nil {
		return err
	}
	return a.store.Replace(key(a.opt.Server)+"."+name+noteFile, content)
}

// Noted returns what was kept by Note, nil without that.
func (a *Agent) Noted(name string) []byte { return a.store.note(name) }
