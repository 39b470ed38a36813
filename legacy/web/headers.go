package web

import (
	"net/http"
	"strings"
)

// Accept tells which forms of response a client takes.
type Accept uint8

// The forms of a response.
const (
	AcceptJSON Accept = 1 << iota
	AcceptSSE
	AcceptBoth = AcceptJSON | AcceptSSE
)

// Has reports whether a client takes one of these forms.
func (a Accept) Has(b Accept) bool { return a&b != 0 }

// AcceptOf reads the Accept headers leniently: a missing one accepts all (E-5).
func AcceptOf(h http.Header) Accept {
	values := h["Accept"]
	if len(values) == 0 {
		return AcceptBoth
	}
	var a Accept
	for _, v := range values {
		for v != "" {
			var item string
			item, v, _ = strings.Cut(v, ",")
			a |= acceptItem(item)
		}
	}
	return a
}

// acceptType returns what a media type in lower case stands for; 0: for nothing that there is.
func acceptType(media string) Accept {
	switch media {
	case "application/json", "application/*":
		return AcceptJSON
	case "text/event-stream", "text/*":
		return AcceptSSE
	case "*/*":
		return AcceptBoth
	}
	return 0
}

func acceptItem(item string) Accept {
	media, params, _ := strings.Cut(item, ";")
	if isRefused(params) {
		return 0
	}
	media = strings.TrimSpace(media)
	if a := acceptType(media); a != 0 { // nearly all clients spell it so
		return a
	}
	return acceptType(strings.ToLower(media))
}

// isRefused reports a quality of zero, which means "not acceptable".
func isRefused(params string) bool {
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

// IsJSON reports whether the body is declared as JSON.
func IsJSON(h http.Header) bool {
	values := h["Content-Type"]
	if len(values) != 1 {
		return false
	}
	media, _, _ := strings.Cut(values[0], ";")
	media = strings.TrimSpace(media)
	return media == "application/json" || strings.EqualFold(media, "application/json")
}

// IsPlain reports whether the body comes without a content coding.
func IsPlain(h http.Header) bool {
	for _, v := range h["Content-Encoding"] {
		if v != "" && !strings.EqualFold(v, "identity") {
			return false
		}
	}
	return true
}

// Header returns the first value of a header given in canonical form.
func Header(h http.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// smallHead is how large a head may be at no further cost than that of its request.
const smallHead = 4 << 10

// fieldCost is what a field takes in memory besides its text.
const fieldCost = 128

// HeadCost returns what the head of a request is charged for while it is kept, in bytes:
// nothing for one as small as nearly all are.
func HeadCost(h http.Header) int {
	size, fields := 0, 0
	for name, values := range h {
		for _, v := range values {
			size += len(name) + len(v)
		}
		fields += len(values)
	}
	if size+fields*fieldCost/4 <= smallHead {
		return 0
	}
	return size + fields*fieldCost
}
