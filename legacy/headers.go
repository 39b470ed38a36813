package legacy

import (
	"net/http"
	"strings"
)

// accept tells which forms of response a client takes.
type accept uint8

const (
	acceptJSON accept = 1 << iota
	acceptSSE
	acceptBoth = acceptJSON | acceptSSE
)

func (a accept) has(b accept) bool { return a&b != 0 }

// acceptOf returns what a client takes of what it may be given.
func (h *HTTP) acceptOf(r *http.Request) accept {
	a := acceptOf(r.Header)
	if h.opt.AlwaysStream && a.has(acceptSSE) {
		return acceptSSE
	}
	return a
}

// acceptOf reads the Accept headers leniently: a missing one accepts all (E-5).
func acceptOf(h http.Header) accept {
	values := h["Accept"]
	if len(values) == 0 {
		return acceptBoth
	}
	var a accept
	for _, v := range values {
		for v != "" {
			var item string
			item, v, _ = strings.Cut(v, ",")
			a |= acceptItem(item)
		}
	}
	return a
}

func acceptItem(item string) accept {
	media, params, _ := strings.Cut(item, ";")
	if refused(params) {
		return 0
	}
	switch media = strings.TrimSpace(media); {
	case strings.EqualFold(media, "application/json"), strings.EqualFold(media, "application/*"):
		return acceptJSON
	case strings.EqualFold(media, "text/event-stream"), strings.EqualFold(media, "text/*"):
		return acceptSSE
	case media == "*/*":
		return acceptBoth
	}
	return 0
}

// refused reports a quality of zero, which means "not acceptable".
func refused(params string) bool {
	for params != "" {
		var param string
		param, params, _ = strings.Cut(params, ";")
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if strings.EqualFold(name, "q") && value != "" && strings.Trim(value, "0.") == "" {
			return true
		}
	}
	return false
}

// isJSON reports whether the body is declared as JSON.
func isJSON(h http.Header) bool {
	values := h["Content-Type"]
	if len(values) != 1 {
		return false
	}
	media, _, _ := strings.Cut(values[0], ";")
	return strings.EqualFold(strings.TrimSpace(media), "application/json")
}

// isPlain reports whether the body comes without a content coding.
func isPlain(h http.Header) bool {
	for _, v := range h["Content-Encoding"] {
		if v != "" && !strings.EqualFold(v, "identity") {
			return false
		}
	}
	return true
}

// header returns the first value of a header given in canonical form.
func header(h http.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}
