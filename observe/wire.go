package observe

// Transport is how a client speaks with the bridge.
type Transport uint8

// The transports.
const (
	NoTransport Transport = iota
	StreamableHTTP
	HTTPSSE
	WebSocket
	Stdio
	Transports // how many there are
)

var transportNames = [Transports]string{"unknown", "streamable-http", "http+sse", "websocket", "stdio"}

// String returns a stable name, fit for logs and metric labels.
func (t Transport) String() string {
	if t < Transports {
		return transportNames[t]
	}
	return transportNames[NoTransport]
}

// HTTP is a version of HTTP.
type HTTP uint8

// The versions.
const (
	NoHTTP HTTP = iota // something else, or not known
	HTTP10
	HTTP11
	HTTP2
	httpVersions // how many there are
)

var httpNames = [httpVersions]string{"", "1.0", "1.1", "2"}

// String returns the version as the conventions of OpenTelemetry have it; "" for none.
func (h HTTP) String() string {
	if h < httpVersions {
		return httpNames[h]
	}
	return ""
}

// HTTPOf returns a version by its numbers, as net/http has them.
func HTTPOf(major, minor int) HTTP {
	switch {
	case major == 1 && minor == 0:
		return HTTP10
	case major == 1:
		return HTTP11
	case major == 2:
		return HTTP2
	}
	return NoHTTP
}

// Server is where a mount's server is, as the conventions of OpenTelemetry have it.
type Server struct {
	Address   string // host name, address or path of a socket; "" for a process
	Port      string // "" where there is none
	Transport string // tcp, unix or pipe
}
