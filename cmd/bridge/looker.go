package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/mcpbridge/bridge/internal/http1"
	"github.com/mcpbridge/bridge/internal/smallfile"
	"github.com/mcpbridge/bridge/internal/usersocket"
	"github.com/mcpbridge/bridge/internal/wellknown"
	"github.com/mcpbridge/bridge/observe/view"
)

// looker reads what a running bridge shows.
type looker struct {
	name   string
	admin  string // the address that was named; "" of a bridge that was found
	base   string
	token  string
	client *http.Client
}

// Bounds on one answer.
const (
	lookTime  = 10 * time.Second
	lookBytes = 64 << 20
)

// looking says which bridges to look at.
type looking struct {
	admin     string
	tokenFile string
}

// lookers returns the bridge whose admin listener was named, or every `bridge stdio` of
// this user.
func (l *looking) lookers(ctx context.Context, environ []string) ([]*looker, error) {
	if l.admin != "" {
		one, err := l.listener()
		return []*looker{one}, err
	}
	var all []*looker
	for _, dir := range usersocket.Dirs(func(name string) string { return variable(environ, name) }) {
		for _, socket := range usersocket.Find(ctx, dir) {
			all = append(all, &looker{name: fmt.Sprintf("stdio %d", socket.PID), base: "http://localhost", client: overSocket(socket.Path)})
		}
	}
	if len(all) == 0 {
		return nil, errors.New("this user runs no `bridge stdio`; for `bridge serve` name its admin listener with --admin")
	}
	return all, nil
}

// listener is the admin listener that was named, by its address or as it was printed.
func (l *looking) listener() (*looker, error) {
	one := &looker{name: "serve", admin: l.address(), client: &http.Client{Timeout: lookTime, Transport: &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: http1.MaxHead}}}
	if path, ok := strings.CutPrefix(l.admin, "unix:"); ok {
		one.base, one.client = "http://localhost", overSocket(path)
	} else {
		address := l.admin
		if !strings.Contains(address, "://") {
			address = "http://" + address
		}
		u, err := url.Parse(address)
		if err != nil || u.Hostname() == "" {
			return nil, usageError{fmt.Errorf("--admin: write HOST:PORT, unix:PATH, or the address that the bridge printed")}
		}
		one.base = u.Scheme + "://" + u.Host
		one.token, _ = strings.CutPrefix(u.Fragment, "token=")
	}
	if l.tokenFile != "" {
		text, err := reading(func() ([]byte, error) { return smallfile.Secret(l.tokenFile) })
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		one.token = strings.TrimSpace(string(text))
	}
	return one, nil
}

func overSocket(path string) *http.Client {
	return &http.Client{Timeout: lookTime, Transport: &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: http1.MaxHead, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
}

// get reads one answer of the bridge.
func (l *looker) get(ctx context.Context, path string, into any) error {
	return l.ask(ctx, http.MethodGet, path, nil, into)
}

// ask sends a request, of which the body is a form, and reads the answer.
func (l *looker) ask(ctx context.Context, method, path string, form io.Reader, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, l.base+path, form)
	if err != nil {
		return err
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if l.token != "" {
		req.Header.Set("Authorization", "Bearer "+l.token)
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return l.unreached(err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		if err := json.NewDecoder(io.LimitReader(resp.Body, lookBytes)).Decode(into); err != nil {
			return l.strange("something else than a bridge's admin listener does")
		}
		return nil
	case http.StatusUnauthorized:
		return errors.New("the admin listener wants its token: name the file with --token-file, or give --admin the whole address that the bridge printed")
	case http.StatusForbidden:
		return errors.New("that bridge lets nobody end anything there: admin.actions is off")
	case http.StatusNotFound:
		if strings.HasPrefix(path, storedList) {
			return errNothingStored
		}
	}
	return l.strange(resp.Status)
}

// address is the listener that was named, without the token that may stand behind it.
func (l *looking) address() string {
	address, _, _ := strings.Cut(l.admin, "#")
	return address
}

// unreached says that nobody answers.
func (l *looker) unreached(err error) error {
	why := wellknown.Reason(err)
	if cause, ok := errors.AsType[syscall.Errno](err); ok {
		why = cause.Error()
	}
	if l.admin == "" {
		return fmt.Errorf("%s does not answer: %s", l.name, why)
	}
	return fmt.Errorf("no bridge answers at %s: %s; does it run, and is that its admin.listen?", l.admin, why)
}

// strange says that what answers is no admin listener.
func (l *looker) strange(what string) error {
	if l.admin == "" {
		return fmt.Errorf("%s answers %s", l.name, what)
	}
	return fmt.Errorf("%s answers %s; is that the address of admin.listen, and not the one for clients?", l.admin, what)
}

func (l *looker) state(ctx context.Context) (state view.State, err error) {
	return state, l.get(ctx, "/api/v1/state", &state)
}

func (l *looker) events(ctx context.Context, after uint64) (seen []view.Seen, err error) {
	return seen, l.get(ctx, fmt.Sprint("/api/v1/events?after=", after), &seen)
}
