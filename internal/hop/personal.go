package hop

import (
	"cmp"
	"crypto/sha256"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/mcpbridge/bridge/internal/bearer"
	"github.com/mcpbridge/bridge/internal/http1"
)

// impersonal fields are sent by clients of all users alike, or differ by request. So do all whose names end like
// one of numbered. By those that tell in which Variant of an answer a client wants to have it, nobody is told apart.
var (
	impersonal = map[string]bool{
		"Accept-Language": true, "B3": true, "Baggage": true, "Cache-Control": true, "Cf-Ray": true,
		"Content-Digest": true, "Content-Md5": true, "Date": true, "Digest": true, "Dnt": true, "Dpop": true, "Elastic-Apm-Traceparent": true,
		"Newrelic": true, "Pragma": true, "Priority": true, "Referer": true, "Request-Id": true, "Rndr-Id": true, "Sentry-Trace": true, "Sw8": true,
		"Traceparent": true, "Tracestate": true, "Uber-Trace-Id": true, "X-Amz-Cf-Id": true, "X-Amzn-Trace-Id": true,
		"X-Arr-Log-Id": true, "X-Azure-Ref": true, "X-B3-Flags": true, "X-B3-Parentspanid": true, "X-B3-Sampled": true, "X-B3-Spanid": true,
		"X-B3-Traceid": true, "X-Cloud-Trace-Context": true, "X-Correlation-Id": true, "X-Datadog-Parent-Id": true,
		"X-Datadog-Sampling-Priority": true, "X-Datadog-Tags": true, "X-Datadog-Trace-Id": true, "X-Dynatrace": true, "X-Instana-S": true,
		"X-Instana-T": true, "X-Request-Id": true, "X-Request-Start": true, "X-Timer": true, "X-Varnish": true, "X-Vercel-Id": true,
	}
	numbered = []string{"-Correlation-Id", "-Request-Id", "-Span-Id", "-Trace-Id"}
)

func isImpersonal(canonical string) bool {
	return impersonal[canonical] || slices.ContainsFunc(numbered, func(end string) bool { return strings.HasSuffix(canonical, end) })
}

// Personal passes those fields of a client that go up with a message of the
// bridge's own and may tell the server who the user is to add, under their
// canonical names.
func Personal(client http.Header, add func(name, value string)) {
	(&Policy{}).Made(client, func(name, value string) {
		if name = textproto.CanonicalMIMEHeaderKey(name); !isImpersonal(name) {
			add(name, value)
		}
	})
}

// Variant tells what a request says besides who it is for and what it asks, by which a server may
// answer otherwise: languages, and what programs hand on with a trace. It is the same for most, and "" without any.
func Variant(client http.Header) string {
	languages, baggage := variant(client, "Accept-Language", itself), variant(client, "Baggage", ofNoTrace)
	if baggage != "" {
		return languages + "\x00" + baggage // which no value has
	}
	return languages
}

// variant returns what goes up of a field, each value as read reads it. Of one value it costs no memory.
func variant(client http.Header, name string, read func(string) string) (all string) {
	if len(client[name]) == 0 || named(client["Connection"], name) {
		return ""
	}
	for _, value := range client[name] {
		switch value = read(value); {
		case value == "" || !http1.IsValue(value):
		case all == "":
			all = value
		default:
			all += "\n" + value
		}
	}
	return all
}

func itself(value string) string { return value }

// ofNoTrace returns the members of a Baggage field that are not of the one tracer which writes there
// what is another with every trace.
func ofNoTrace(baggage string) string {
	if !strings.Contains(baggage, "sentry-") {
		return baggage
	}
	members := strings.Split(baggage, ",")
	return strings.Join(slices.DeleteFunc(members, func(m string) bool { return strings.HasPrefix(strings.TrimSpace(m), "sentry-") }), ",")
}

// Audience names for whom a request is: its principal, and whatever else its headers
// tell the server, which may know users by another one than Authorization (B-42, H-10).
func Audience(principal string, client http.Header) string {
	return told(principal, client, func(_, value string) string { return value })
}

// Person names who makes a request, among those behind its principal: a name that stays with
// him. It is the Audience, but for tokens in which a proxy says who has signed in: many
// make a new one for each request, and so only whose it is counts.
func Person(principal string, client http.Header) string {
	return told(principal, client, func(name, value string) string {
		if ways(name)&user == 0 {
			return value // anybody may have written it
		}
		return cmp.Or(bearer.Subject("Bearer "+strings.ReplaceAll(value, "=", "")), value) // AWS pads
	})
}

// told adds what the headers tell to a principal, each value as read reads it.
func told(principal string, client http.Header, read func(name, value string) string) string {
	var lines []string
	Personal(client, func(name, value string) { lines = append(lines, name+":"+read(name, value)) })
	if len(lines) == 0 {
		return principal
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
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
