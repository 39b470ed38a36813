package config

import (
	"reflect"
	"slices"
	"strings"
)

// idle says when settings of a mount have no effect, and so are a mistake: most likely the setting that they need was
// forgotten.
type idle struct {
	// prefix begins the keys, all but those in except.
	prefix string
	except []string
	when   func(m *Mount) bool
	text   string
}

// With the default of auth.mode, login and auth still obey where logins are.
var idles = []idle{
	{"auth.", []string{"auth.mode", "auth.dir", "auth.store", "auth.browser"}, func(m *Mount) bool { return m.Auth.Mode == "relay" },
		"has no effect while auth.mode is relay; remove it, or set auth.mode to agent or terminate"},
	{"auth.clients.", nil, func(m *Mount) bool { return m.Auth.Mode == "agent" },
		"has no effect with auth.mode agent; remove it, or set auth.mode to terminate"},
	{"auth.client-", []string{"auth.client-name"}, func(m *Mount) bool { return m.Auth.Mode == "terminate" && m.Auth.Grant == "auto" },
		"has no effect without auth.grant, by which the bridge gets tokens of its own; remove it, or set auth.grant"},
	{"sampling.", []string{"sampling.provider"}, func(m *Mount) bool { return m.Sampling.Provider == "off" },
		"has no effect while sampling.provider is off; remove it, or set sampling.provider to openai or anthropic"},
	{"questions.wait", nil, func(m *Mount) bool { return !m.asksOnPage() },
		"is about a page, and nothing is asked on one; remove it, or add questions: page"},
	{"questions.open", nil, func(m *Mount) bool { return !m.asksOnPage() },
		"is about a page, and nothing is asked on one; remove it, or add questions: page"},
	{"roots.header", nil, func(m *Mount) bool { return len(m.Roots.By) == 0 },
		"has no effect without roots.by, which says whose roots are which"},
	{"command-mode", nil, func(m *Mount) bool { return m.Upstream != "" },
		"has no effect beside upstream: only a command has processes"},
	{"timeouts.discover", nil, func(m *Mount) bool { return len(m.Command) > 0 },
		"has no effect with a command, which has timeouts.start for its first answer; remove it, or set that"},
	{"upstream-tls.", nil, func(m *Mount) bool { return len(m.Command) > 0 && m.Auth.Mode != "terminate" },
		"has no effect with a command, which is not reached by https; remove it"},
}

// asksOnPage reports whether people are asked in a browser.
func (m *Policy) asksOnPage() bool {
	return m.Questions.Policy == "page" || m.Sampling.Provider != "off" && m.Sampling.Approve == "on"
}

// idle reports settings of a mount that have no effect. What an entry took over from the top level, shared, is for
// those that it has an effect on.
func (p *problems) idle(m, shared *Mount, label string) {
	own, usual, top := reflect.ValueOf(m).Elem(), reflect.ValueOf(Default().Mount), reflect.ValueOf(shared).Elem()
	for _, rule := range idles {
		if !rule.when(m) {
			continue
		}
		for _, o := range mountSchema.options {
			value := o.in(own).Interface()
			if strings.HasPrefix(o.Key, rule.prefix) && !slices.Contains(rule.except, o.Key) && !empty(value) &&
				!reflect.DeepEqual(value, o.in(usual).Interface()) && !reflect.DeepEqual(value, o.in(top).Interface()) {
				*p = append(*p, Problem{Key: label + o.Key, Text: rule.text, idle: true})
			}
		}
	}
}

// empty reports whether a value sets nothing: an empty list is not the default, but as good as that.
func empty(value any) bool {
	v := reflect.ValueOf(value)
	return v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}

// idleStore reports settings of a store that have no effect on its kind.
func (p *problems) idleStore(s *Store, kind string) {
	add := func(key, text string) { *p = append(*p, Problem{Key: key, Text: text, idle: true}) }
	usual := Default().Store
	if s.Durability != usual.Durability && kind != "file" {
		add("store.durability", "has an effect on a store in a file only; remove it")
	}
	// store.journal, which turns off what we made for speed, may be said of any, as http, park and huge-pages may.
	if s.Outage != usual.Outage && kind != "redis" {
		add("store.outage", "has an effect on a store in Redis only; remove it")
	}
	if s.Unload != usual.Unload && kind == "memory" {
		add("store.unload", "has no effect with memory:, where nothing is kept; remove it, or set store.url")
	}
}
