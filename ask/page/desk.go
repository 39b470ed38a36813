// Package page asks people in a browser what a server asks, for clients that
// cannot be asked.
//
// A Desk holds the questions that wait, each under a link of its own, and serves
// them as plain HTML forms: nothing in them needs a script. It knows nothing of
// calls and flows: who asks hands in a question and is told its answer.
//
//	waiting ──▶ answered     a person accepted, declined or cancelled: once
//	   └──────▶ withdrawn    who asked no longer needs it, or its time is over
package page

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/mcpbridge/bridge/ask/form"
	"github.com/mcpbridge/bridge/internal/budget"
)

// Question is what a server asks of a person. Its texts are the server's own.
type Question struct {
	Server  string // where the question comes from, as the person knows it
	Tool    string // what was called
	Message string
	Form    form.Form // of a form; empty otherwise
	URL     string    // of an interaction on another site; empty otherwise
	Preview string    // what the person is to approve; empty otherwise
	// Owner is for whom the call was made: an opaque name of a user or a session. An
	// inbox shows the questions of one owner to a browser that has opened one of them.
	Owner string
	// Named says that Owner is a user and no session.
	Named bool
	// Tenant is whose share of the desk's places the question takes; empty: nobody's.
	Tenant string
	// Account is charged with what browsers submit; it may be nil.
	Account *budget.Account
	// Deadline is when nobody waits for the answer any more.
	Deadline time.Time
	// Lost reports that an answer would reach nobody any more; nil: it does until the deadline.
	Lost func() bool
	// Answer gets the elicitation's result, once. It must not block.
	Answer func(result []byte)
}

// Why a question is not put.
var (
	ErrFull   = errors.New("too many questions wait for people")
	ErrOthers = errors.New("too many questions of this client, or of others at its address, wait for people")
)

// keptEnds is how many ended questions are remembered, to tell who opens a link late
// what became of it.
const keptEnds = 4096

// Desk holds the questions that wait for people. It is safe for concurrent use.
type Desk struct {
	base   *url.URL // where people reach it
	mark   string   // ends all of its addresses
	places *budget.Places
	key    [32]byte // of the browsers' cookies; they end with the process

	mu      sync.Mutex
	waiting map[string]*waiting             // by token
	ended   *simplelru.LRU[string, outcome] // by token
	tab     tab
}

// waiting is a question under its token.
type waiting struct {
	Question
	token   string
	asked   time.Time
	browser string // that opened it first; empty: none has
	leave   func() // gives its place back
}

// outcome says what became of a question.
type outcome string

const (
	accepted  outcome = "accept"
	declined  outcome = "decline"
	cancelled outcome = "cancel"
	withdrawn outcome = "withdrawn"
)

// New returns a desk that people reach under base, for at most limit questions at
// a time, the last eighth of them for parties that have fewer than an eighth. Where several
// desks have one base, each has a mark of its own, by which MarkOf tells whose an address is.
func New(base *url.URL, limit int, mark string) *Desk {
	if mark != "" {
		mark = markSign + mark
	}
	own := *base
	own.Host = withoutDefaultPort(own.Scheme, own.Host)
	d := &Desk{base: &own, mark: mark, places: budget.NewPlaces(limit), waiting: map[string]*waiting{}}
	d.ended, _ = simplelru.NewLRU[string, outcome](keptEnds, nil) // fails for sizes below 1 only
	rand.Read(d.key[:])                                           // never fails
	return d
}

// Ask puts a question and returns the link under which a person answers it. Whoever
// has the link may answer, so it must reach nobody else. The error is ErrFull or ErrOthers.
func (d *Desk) Ask(q Question) (link string, err error) {
	w := &waiting{Question: q, token: rand.Text() + d.mark, asked: time.Now()}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expireLocked()
	var others bool
	if w.leave, others = d.places.Take(q.Tenant); others {
		return "", ErrOthers
	}
	if w.leave == nil {
		return "", ErrFull
	}
	d.waiting[w.token] = w
	return d.link(w.token), nil
}

// Withdraw takes the question under link back. It is idempotent, and does nothing
// after an answer.
func (d *Desk) Withdraw(link string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.endLocked(tokenIn(link), withdrawn)
}

// Refuse answers the question under link as its buttons would: somebody said no
// elsewhere, or with cancel made no choice. After an answer it does nothing.
func (d *Desk) Refuse(link string, cancel bool) {
	how := declined
	if cancel {
		how = cancelled
	}
	d.mu.Lock()
	w := d.waiting[tokenIn(link)]
	first := w != nil && d.endLocked(w.token, how)
	d.mu.Unlock()
	if first {
		result, _ := w.result(how, nil)
		w.Answer(result)
	}
}

// Len returns how many questions wait.
func (d *Desk) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.waiting)
}

func (d *Desk) link(token string) string { return d.base.JoinPath("q", token).String() }

func tokenIn(link string) string { return link[strings.LastIndexByte(link, '/')+1:] }

// markSign comes before the mark of a desk, and nowhere else in what follows the last slash.
const markSign = "-"

// MarkOf returns the mark of the desk whose question or inbox is at a path; "" where it names none.
func MarkOf(path string) string {
	_, mark, _ := strings.Cut(tokenIn(path), markSign)
	return mark
}

// find returns the question under token, or else what became of it; neither when
// there never was one, or it is too long ago.
func (d *Desk) find(token string) (*waiting, outcome) {
	w, end := d.look(token)
	if w != nil && w.lost() {
		d.end(token, withdrawn)
		return d.look(token)
	}
	return w, end
}

func (d *Desk) look(token string) (*waiting, outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expireLocked()
	if w := d.waiting[token]; w != nil {
		return w, ""
	}
	end, _ := d.ended.Get(token)
	return nil, end
}

func (w *waiting) lost() bool { return w.Lost != nil && w.Lost() }

// Knows reports whether the last part of a path names a question that the desk has, or remembers.
func (d *Desk) Knows(path string) bool {
	q, end := d.find(tokenIn(path))
	return q != nil || end != ""
}

// end ends a question and reports whether this call did: of two answers at the same
// time one counts.
func (d *Desk) end(token string, how outcome) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.endLocked(token, how)
}

func (d *Desk) endLocked(token string, how outcome) bool {
	w := d.waiting[token]
	if w == nil {
		return false
	}
	w.leave()
	delete(d.waiting, token)
	d.ended.Add(token, how)
	return true
}

// expireLocked forgets questions whose time is over. Who asked has a timer of its
// own; this keeps what nobody withdrew from staying.
func (d *Desk) expireLocked() {
	now := time.Now()
	for token, w := range d.waiting {
		if !w.Deadline.IsZero() && now.After(w.Deadline) {
			d.endLocked(token, withdrawn)
		}
	}
}

// of returns the questions of the owners that known accepts, oldest first.
func (d *Desk) of(known func(owner string) bool) []*waiting {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expireLocked()
	var found []*waiting
	for _, w := range d.waiting {
		if known(w.Owner) {
			found = append(found, w)
		}
	}
	return found
}

// sign returns what only this desk can compute of a text.
func (d *Desk) sign(purpose, text string) string {
	mac := hmac.New(sha256.New, d.key[:])
	mac.Write([]byte(purpose + "\x00" + text))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}
