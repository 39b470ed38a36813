// Package report knows which clients came in the last 30 days and what they used the
// bridge for: whether it is still needed, and by whom. It owns a small file, in
// which there is nothing but names, revisions, counts and days.
package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/mcpbridge/bridge/internal/smallfile"
)

// Client is one kind of client: a program in a version, speaking a revision.
type Client struct {
	Name     string `json:"name"`
	Version  string `json:"version,omitempty"`
	Revision string `json:"revision"`
	// Modern says that it speaks to the server as it is: the bridge only hands on.
	Modern bool `json:"modern,omitempty"`
	// Relayed says the same of one that speaks the revision of an older server.
	Relayed  bool      `json:"relayed,omitempty"`
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
	Sessions int       `json:"sessions"`           // of modern clients: requests
	Calls    int       `json:"calls,omitempty"`    // requests of sessions
	Answers  int       `json:"answers,omitempty"`  // to questions of the server
	Progress int       `json:"progress,omitempty"` // calls that wanted to be told of their progress
	Follows  int       `json:"follows,omitempty"`  // resources that it wanted to hear of
	// Lost is how often it got something in the words of its revision, or not at all, by
	// what.
	Lost map[string]int `json:"lost,omitempty"`

	moved *key // set once it has no entry of its own any more: what that was
}

// Report is what a book says.
type Report struct {
	Clients []Client `json:"clients"` // those that came last first
}

// Bounds of what is kept.
const (
	Days       = 30
	maxClients = 100
	maxOthers  = 8  // revisions of which there are further clients
	maxLosses  = 16 // words of one client
	maxName    = 48 // bytes
	other      = "_OTHER"
	maxFile    = 1 << 20
)

// Book counts clients. Its methods are safe for concurrent use; those of the nil Book do
// nothing.
type Book struct {
	file string
	now  func() time.Time

	mu      sync.Mutex
	clients map[key]*Client
	dirty   bool
}

type key struct{ name, version, revision string }

// Open reads the book in a file; one that is not there yet is empty.
func Open(file string) (*Book, error) {
	b := &Book{file: file, now: time.Now, clients: map[key]*Client{}}
	was, err := Read(file)
	if errors.Is(err, fs.ErrNotExist) { // which is as well, as long as it can be written
		_, err = os.Stat(filepath.Dir(file))
	}
	if err != nil {
		return nil, err
	}
	for i := range was.Clients {
		c := &was.Clients[i]
		b.clients[key{c.Name, c.Version, c.Revision}] = c
	}
	return b, nil
}

// Read returns what a file says.
func Read(file string) (Report, error) {
	var r Report
	text, err := smallfile.UpTo(file, maxFile)
	if err != nil {
		return r, err
	}
	if err = json.Unmarshal(text, &r); err != nil {
		r = Report{}
		if json.Unmarshal(text, &r.Clients) != nil { // as earlier releases wrote it
			return Report{}, errors.New(file + " is no report: " + err.Error())
		}
	}
	slices.SortFunc(r.Clients, func(a, b Client) int { return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Name, b.Name)) })
	return r, nil
}

// Visit is one session of a client.
type Visit struct {
	book *Book
	of   *Client
}

// Session counts a session that a client opened.
func (b *Book) Session(name, version, revision string) Visit {
	return b.count(name, version, revision, 1)
}

// Again returns a session that goes on in another process, and was counted there.
func (b *Book) Again(name, version, revision string) Visit {
	return b.count(name, version, revision, 0)
}

// Relayed counts a session that was handed to a server of its client's own revision.
func (b *Book) Relayed(name, version, revision string) {
	v := b.count(name, version, revision, 1)
	v.as(func(c *Client) { c.Relayed = true })
}

// Modern counts a request that went to the server as it was.
func (b *Book) Modern(agent, revision string) {
	name, version, _ := strings.Cut(strings.SplitN(agent, " ", 2)[0], "/")
	v := b.count(name, version, revision, 1)
	v.as(func(c *Client) { c.Modern = true })
}

// as notes what kind of client it is.
func (v *Visit) as(note func(*Client)) {
	if v == nil || v.book == nil {
		return
	}
	v.book.mu.Lock()
	defer v.book.mu.Unlock()
	note(v.clientLocked())
}

// clientLocked returns the session's client, which may have made room for others meanwhile.
func (v *Visit) clientLocked() *Client {
	if k := v.of.moved; k != nil {
		v.of = v.book.clientLocked(*k)
	}
	return v.of
}

func (b *Book) count(name, version, revision string, sessions int) Visit {
	if b == nil {
		return Visit{}
	}
	k := key{cmp.Or(clean(name), "(no name)"), clean(version), clean(revision)}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.clientLocked(k)
	c.Sessions += sessions
	c.Last, b.dirty = b.now().UTC(), true
	return Visit{b, c}
}

// Called counts a request of the session.
func (v *Visit) Called(progress, follows bool) {
	if v == nil || v.book == nil {
		return
	}
	v.book.mu.Lock()
	defer v.book.mu.Unlock()
	c := v.clientLocked()
	c.Calls++
	if progress {
		c.Progress++
	}
	if follows {
		c.Follows++
	}
	c.Last, v.book.dirty = v.book.now().UTC(), true
}

// Answered counts an answer to a question.
func (v *Visit) Answered() {
	v.as(func(c *Client) { c.Answers++; v.book.dirty = true })
}

// Lost counts that the client got something in the words of its revision, or not at all.
func (v *Visit) Lost(what string) {
	v.as(func(c *Client) { c.lose(what, 1); v.book.dirty = true })
}

// Save writes the book if something has changed. A reader sees the old one or the new
// one, whole.
func (b *Book) Save() error {
	if b == nil {
		return nil
	}
	text, changed, err := b.text()
	if err != nil || !changed {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(b.file), ".report-*") // with mode 0600
	if err != nil {
		return err
	}
	_, err = next.Write(text)
	err = errors.Join(err, next.Close())
	if err == nil {
		err = os.Rename(next.Name(), b.file)
	}
	if err != nil {
		_ = os.Remove(next.Name())
	}
	return err
}

func (b *Book) text() ([]byte, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.dirty {
		return nil, false, nil
	}
	b.pruneLocked()
	list := make([]Client, 0, len(b.clients))
	for _, c := range b.clients {
		list = append(list, *c) // whose map is read before the lock is left
	}
	slices.SortFunc(list, func(a, b Client) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Revision, b.Revision))
	})
	text, err := json.MarshalIndent(Report{list}, "", " ")
	b.dirty = err != nil
	return text, true, err
}

// clean makes a declared text short and printable.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return -1
	}, text[:min(len(text), maxName)])
	return strings.TrimSpace(text)
}
