package authorize

import (
	"encoding/json"
	"time"
)

// How often a browser is asked to open a page for one server, by however many processes: no
// sooner after a page than tabEvery, unless that led to a login, and tabsMost times in tabsWhile
// whatever they led to. An authorization server may end a sign-in without a person, and the
// server want other rights at once.
const (
	tabEvery  = 2 * time.Minute
	tabsWhile = 10 * time.Minute
	tabsMost  = 3
)

// tab is a page that a browser was asked to open, by the name of its pending sign-in.
type tab struct {
	Page string    `json:"page"`
	At   time.Time `json:"at"`
}

// tabs returns the last pages that a browser was asked to open for the server, the oldest first.
// One process at a time opens pages, the one that leads.
func (s *store) tabs() []tab {
	content, err := s.Content(key(s.server) + openedFile)
	var all, last []tab
	if err != nil || json.Unmarshal(content, &all) != nil {
		return nil
	}
	for _, one := range all {
		if lately(one.At, tabsWhile) {
			last = append(last, one)
		}
	}
	return last
}

func (s *store) keepTabs(tabs []tab) error {
	content, err := json.Marshal(tabs)
	if err != nil {
		return err
	}
	return s.Replace(key(s.server)+openedFile, content)
}

// tooSoon reports whether no other page may be opened yet, where this is the login; nil: there is none.
func tooSoon(tabs []tab, l *Login) bool {
	if len(tabs) == 0 {
		return false
	}
	last := tabs[len(tabs)-1]
	answered := l != nil && l.SignedIn.After(last.At)
	return len(tabs) >= tabsMost || !answered && lately(last.At, tabEvery)
}
