package zitadel

import (
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"testing"
)

// TestMain makes the test binary two programs: the tests, and the browser that they open.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "browse" {
		if signIn(os.Args[2]) != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// browser is the command of a browser whose person signs in.
func browser() []string { return []string{os.Args[0], "browse"} }

// person looks at pages and fills forms in.
type person struct{ http.Client }

func newPerson() (*person, error) {
	jar, err := cookiejar.New(nil)
	return &person{http.Client{Jar: jar}}, err
}

// page is what a browser shows.
type page struct {
	at   *url.URL
	text string
}

func (p *person) take(resp *http.Response, err error) (*page, error) {
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return &page{resp.Request.URL, string(text)}, err
}

var (
	action = regexp.MustCompile(`<form method="POST"(?: action="([^"]*)")?`)
	hidden = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)
)

// fill sends the form of a page with what the person types in.
func (p *person) fill(from *page, typed url.Values) (*page, error) {
	form := action.FindStringSubmatch(from.text)
	if form == nil {
		return nil, errors.New("there is no form in " + from.text)
	}
	for _, field := range hidden.FindAllStringSubmatch(from.text, -1) {
		typed.Set(field[1], field[2])
	}
	at, err := from.at.Parse(form[1])
	if err != nil {
		return nil, err
	}
	return p.take(p.PostForm(at.String(), typed))
}

func credentials() url.Values { return url.Values{"username": {user}, "password": {password}} }

// signIn opens a page, and signs in there.
func signIn(address string) error {
	p, err := newPerson()
	if err != nil {
		return err
	}
	shown, err := p.take(p.Get(address))
	if err != nil {
		return err
	}
	_, err = p.fill(shown, credentials())
	return err
}

// enter types a code in on another device, signs in there, and agrees.
func enter(address, code string) error {
	p, err := newPerson()
	if err != nil {
		return err
	}
	shown, err := p.take(p.Get(address))
	if err != nil {
		return err
	}
	if shown, err = p.fill(shown, url.Values{"user_code": {code}}); err != nil {
		return err
	}
	if shown, err = p.fill(shown, credentials()); err != nil {
		return err
	}
	agree, err := shown.at.Parse("./confirm?action=allowed")
	if err != nil {
		return err
	}
	_, err = p.take(p.Get(agree.String()))
	return err
}
