package hop

import (
	"crypto/sha256"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// impersonal fields are sent by clients of all users alike, or differ by request.
var impersonal = map[string]bool{
	"Accept-Language": true, "B3": true, "Baggage": true, "Cache-Control": true, "Cf-Ray": true, "Dnt": true, "Pragma": true, "Priority": true,
	"Referer": true, "Request-Id": true, "Sentry-Trace": true, "Traceparent": true, "Tracestate": true, "Uber-Trace-Id": true, "Via": true,
	"X-Amzn-Trace-Id": true, "X-B3-Flags": true, "X-B3-Parentspanid": true, "X-B3-Sampled": true, "X-B3-Spanid": true, "X-B3-Traceid": true,
	"X-Cloud-Trace-Context": true, "X-Correlation-Id": true, "X-Datadog-Parent-Id": true, "X-Datadog-Trace-Id": true, "X-Request-Id": true,
	"X-Request-Start": true,
}

// Personal passes those fields of a client that go up with a message of the
// bridge's own and may tell the server who the user is to add, under their
// canonical names.
func Personal(client http.Header, add func(name, value string)) {
	(&Policy{}).Made(client, func(name, value string) {
		if name = textproto.CanonicalMIMEHeaderKey(name); !impersonal[name] {
			add(name, value)
		}
	})
}

// Audience names for whom a request is: its principal, and whatever else its headers
// tell the server, which may know users by another one than Authorization (B-42, H-10).
func Audience(principal string, client http.Header) string {
	var told []string
	Personal(client, func(name, value string) { told = append(told, name+":"+value) })
	if len(told) == 0 {
		return principal
	}
	slices.Sort(told)
	sum := sha256.Sum256([]byte(strings.Join(told, "\n")))
	return principal + "\x00" + string(sum[:])
}

// Lasting returns what Personal tells as lines, for as long as what the client asked for waits; nil:
// nothing. Nothing of the headers stays in memory by them.
func Lasting(client http.Header) (lines []byte) {
	Personal(client, func(name, value string) { lines = append(append(append(append(lines, name...), ':'), value...), '\n') })
	return lines
}

// Lasted returns the header that Lasting has made lines of; nil for none.
func Lasted(lines []byte) http.Header {
	if len(lines) == 0 {
		return nil
	}
	header := http.Header{}
	for line := range strings.Lines(string(lines)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		header[name] = append(header[name], value)
	}
	return header
}
