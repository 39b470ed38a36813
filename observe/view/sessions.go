package view

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// filter says which sessions are wanted.
type filter struct{ Mount, Version, Client, State string }

func readFilter(q url.Values) filter {
	return filter{q.Get("mount"), q.Get("version"), q.Get("client"), q.Get("state")}
}

func (f *filter) wants(s *session) bool {
	return (f.Mount == "" || s.Mount == f.Mount) &&
		(f.Version == "" || string(s.Version) == f.Version) &&
		(f.Client == "" || strings.Contains(strings.ToLower(s.Client+" "+s.ID), strings.ToLower(f.Client))) &&
		(f.State == "" || f.State == "waiting" && len(s.Flows) > 0 || f.State == "grave" && s.Diagnosis.Grave || f.State == "idle" && len(s.Flows) == 0)
}

// sessions lists sessions.
func (v *View) sessions(w http.ResponseWriter, r *http.Request) {
	wanted := readFilter(r.URL.Query())
	all := v.look()
	found := ranked(all, wanted.wants)
	var mounts []string
	total := 0
	for _, m := range all {
		mounts = append(mounts, m.Path)
		total += len(m.All)
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("from"))
	from = max(0, min(from, len(found)))
	shown := found[from:min(from+mostRows, len(found))]
	v.show(w, r, "sessions", "Sessions", map[string]any{
		"Filter": wanted, "Sessions": shown, "Found": len(found), "Total": total, "Mounts": mounts, "First": from + 1, "Last": from + len(shown),
		"Before": link(r.URL, from-mostRows, from > 0), "After": link(r.URL, from+mostRows, from+mostRows < len(found)),
	})
}

// ranked returns the sessions that are wanted, the gravest first, then those that wait,
// then the newest.
func ranked(mounts []mountSaid, wanted func(*session) bool) []*session {
	var found []*session
	for _, m := range mounts {
		for _, s := range m.All {
			if wanted(s) {
				found = append(found, s)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b *session) int {
		if c := rank(b) - rank(a); c != 0 {
			return c
		}
		return b.Began.Compare(a.Began)
	})
	return found
}

func rank(s *session) int {
	switch {
	case s.Diagnosis.Grave:
		return 2
	case len(s.Flows) > 0:
		return 1
	}
	return 0
}

// link is the same page from another row on; "" when there is none.
func link(at *url.URL, from int, there bool) string {
	if !there {
		return ""
	}
	q := at.Query()
	q.Set("from", strconv.Itoa(max(0, from)))
	return at.Path + "?" + q.Encode()
}
