// Package config owns everything about the bridge that a person can set: the
// settings themselves, their defaults, where they are read from (a YAML file,
// BRIDGE_… environment variables, command-line flags, all under the same names)
// and what makes a value right. It knows nothing of the packages that obey the
// settings; only cmd/bridge imports it and hands the values on.
package config

// Config is the whole configuration of one process.
//
// The comments of the fields are the documentation: this file and those that have a group are embedded
// in the binary, and `bridge config defaults`, `bridge config docs` and the help
// of the flags are generated from it. The tag `key` names a setting in all three
// sources; min, max and oneof are checked by Validate; secret keeps a value out
// of every message.
type Config struct {
	// Where to accept clients: HOST:PORT, :PORT for every interface, or unix:PATH for a Unix socket.
	Listen string `key:"listen"`
	// How to serve HTTPS. Without a certificate the bridge serves plain HTTP.
	TLS ServerTLS `key:"tls"`
	// The browser origins that may call, as SCHEME://HOST[:PORT]; "*" stands for any. Empty: pages on the loopback
	// interface. Clients that send no Origin header, which is every client but a browser, may call in any case; requests of foreign pages do not pass for them.
	AllowedOrigins []string `key:"allowed-origins" like:"[https://app.example.com]"`
	// The host names under which clients may address the bridge, as HOST or HOST:PORT; "*" stands for any. Empty: a
	// bridge that listens on loopback takes only loopback names, which stops DNS rebinding; one that listens elsewhere
	// takes any name.
	AllowedHosts []string `key:"allowed-hosts" like:"[bridge.example.com]"`
	// The proxies whose word on a client's address is believed, as IP addresses, CIDR blocks, or unix for whoever comes
	// over a Unix socket. From anyone else Forwarded and X-Forwarded-… headers are ignored; to the server they never go. What proxies say of who has signed in, such as X-Auth-Request-User, goes on from these only.
	TrustedProxies []string `key:"trusted-proxies" like:"[10.0.0.0/8]"`
	// Whether connections of these proxies begin with a header of the PROXY protocol, version 1 or 2, that gives the client's
	// address, as balancers of TCP connections send it. When on, connections of theirs without one are closed.
	ProxyProtocol string `key:"proxy-protocol" oneof:"off|on"`
	// Which HTTP/1.1 speaks on plain connections, towards clients and servers alike: lean is the bridge's own for the simple
	// requests that nearly all are, standard leaves everything to Go's net/http, which takes more CPU. TLS and HTTP/2 are
	// net/http's in any case.
	HTTP string `key:"http" oneof:"lean|standard"`
	// Whether event streams that are quiet for a second give their goroutines up, which saves most of their memory. Only
	// on Linux, and only streams of plain HTTP/1.1.
	Park string `key:"park" oneof:"on|off"`
	// How far the heap may grow before it is collected, as long as little of it stays: more costs memory, less CPU. off leaves
	// that to Go alone, and so does GOGC in the environment. Only bridge serve obeys it.
	HeapFloor SizeOrOff `key:"heap-floor" min:"off" max:"4GiB"`
	// Whether the memory up to heap-floor lies in huge pages, where Linux gives them to who asks (transparent_hugepage is
	// madvise or always): less CPU, and memory is taken in portions of 2 MiB. Only bridge serve obeys it.
	HugePages string `key:"huge-pages" oneof:"on|off"`
	// What is logged, and how.
	Log Log `key:"log"`
	// Where sessions are kept, so that they outlive the process.
	Store Store `key:"store"`
	// How several bridges that share a store in Redis reach each other, so that any of them can serve any request.
	Replica Replica `key:"replica"`
	// A second listener, for the people who run the bridge: metrics for machines, and a page that shows what is going on.
	// Nothing of it is served to clients.
	Admin Admin `key:"admin"`
	// What is counted on that listener.
	Metrics Metrics `key:"metrics"`
	// A directory, which must be there, in which both hops of every session are recorded from the start on, in a file of JSON Lines that
	// "bridge replay" reads. Values are replaced by their kinds unless admin.payloads is on; tokens and request state always are. Empty: nowhere.
	Record string `key:"record"`

	Mount

	// Several upstreams under one listener, each with a path of its own. An entry takes the settings above from
	// path to limits; those from profile on stand in for what an entry leaves out. Can only be set in the file.
	Upstreams []Mount `key:"upstreams"`
}

// Mount is one upstream and the path under which clients reach it.
type Mount struct {
	// The path of the MCP endpoint. Clients of 2024-11-05 find HTTP+SSE at the path with /sse after it, and if there is
	// only one upstream also at /sse itself.
	Path string `key:"path"`
	// The URL of the server's MCP endpoint.
	Upstream string `key:"upstream" url:"true"`
	// The Unix socket on which that server listens; the URL then only says the path, the Host header and whether to use
	// TLS, like http://localhost/mcp.
	UpstreamSocket string `key:"upstream-socket"`
	// The server as a command and its arguments, for one that speaks over standard input and output. Takes the place
	// of upstream; on the command line it is what follows "--".
	Command []string `key:"command" secret:"true" like:"[my-server, --verbose]"`
	// What a command is given of the bridge's environment, besides what every program needs (PATH, HOME, LANG and the like):
	// NAME, NAME* for all that begin so, * for all, or NAME=VALUE. What begins with BRIDGE_ is never handed on.
	// With bridge stdio, which a client starts in the server's place, and with bridge check, empty stands for *.
	CommandEnv []string `key:"command-env" secret:"true" like:"[API_KEY, LOG_*]"`
	// Headers added to every request to the server, as NAME: VALUE. A header that is set here replaces the client's,
	// Authorization, Cookie and User-Agent included.
	Headers map[string]string `key:"headers" secret:"true" like:"{Authorization: \"Bearer …\"}"`
	// How to trust a server that is reached by https, and how to be known to it.
	UpstreamTLS ClientTLS `key:"upstream-tls"`

	Policy
}

// Policy is what a mount allows its clients and its server.
type Policy struct {
	// How much of a result older clients get: strict removes what their revision of the protocol does not define,
	// minimal only what would break them.
	Profile string `key:"profile" oneof:"strict|minimal"`
	// What a client gets for structured content and output schemas that are no JSON objects, which older revisions do
	// not have: wrap puts them into an object under "result", drop leaves them out and keeps the text.
	NonObject string `key:"non-object" oneof:"wrap|drop"`
	// What a client of 2025-06-18, which knows no choice of several, gets for such a question: expand asks yes or no for
	// each option, cancel answers for the client that it was cancelled.
	MultiSelect string `key:"multi-select" oneof:"expand|cancel"`
	// Tasks for clients of 2025-11-25: hide runs every call to its end within the call, host lets the client start calls
	// as tasks, which the bridge then keeps.
	Tasks string `key:"tasks" oneof:"hide|host"`
	// The address under which clients know the bridge, where that is not what they say in Host, as behind a proxy: that of the
	// endpoint, like https://mcp.example.com/mcp, or without a path that of the listener. Clients that sign in ask for tokens
	// under this name, and its host is allowed.
	PublicURL string `key:"public-url" url:"true"`
	// Whether a client's Authorization header goes to the server: relay hands it on, drop keeps it from a server that it
	// is not meant for.
	Authorization string `key:"authorization" oneof:"relay|drop"`
	// Who signs in to the server, and how the bridge does so.
	Auth Auth `key:"auth"`
	// What to do with requests that are modern already: pass them to the server unchanged, or refuse them.
	Modern string `key:"modern" oneof:"pass|refuse"`
	// When older clients are handed to the server as they are, because it speaks their revision itself: auto where it
	// speaks no newer one, or the client wants what only its own revision has; always where the server offers the
	// client's revision; never. A command gets a process for each such client.
	LegacyRelay string `key:"legacy-relay" oneof:"auto|always|never"`
	// How the processes of a command serve sessions: one shared by all, or one per-session for each.
	CommandMode string `key:"command-mode" oneof:"shared|per-session"`
	// Whether requests need a session: optional serves those without one on their own, so that the server can ask
	// nothing back; required refuses them.
	Session string `key:"session" oneof:"optional|required"`
	// Whether the server may speak a draft of 2026-07-28: auto believes the versions that it offers, on takes it for
	// granted, off refuses servers that offer only drafts.
	Draft string `key:"draft" oneof:"auto|on|off"`
	// How answers go to a server that speaks a draft: bare, or each wrapped as {"result": …}, which only the first
	// drafts expected.
	DraftAnswers string `key:"draft-answers" oneof:"bare|wrapped"`
	// What some clients need that the protocol does not ask for.
	Legacy Legacy `key:"legacy"`
	// How a question of the server is answered that the client cannot be asked.
	Questions Questions `key:"questions"`
	// The model that answers sampling requests of the server for clients that have none.
	Sampling Sampling `key:"sampling"`
	// The roots that clients without roots of their own have.
	Roots Roots `key:"roots"`
	// How long things may take.
	Timeouts Timeouts `key:"timeouts"`
	// How large and how many things may get.
	Limits Limits `key:"limits"`
	// How many requests may come in what time. Beyond that they are refused: with 429 and Retry-After over HTTP.
	Rates Rates `key:"rates"`
}

// Legacy is what some clients need that the protocol does not ask for.
type Legacy struct {
	// Whether every answer is an event stream where the client takes one, for clients that drop JSON bodies though they
	// accept them, like go-sdk before v0.3.
	AlwaysStream string `key:"always-stream" oneof:"off|on"`
}

// Log is what is logged, and how.
type Log struct {
	// The least important level that is logged.
	Level string `key:"level" oneof:"trace|debug|info|warn|error"`
	// The form of the log on standard error: console for people, json for machines, auto for console on a terminal
	// and json elsewhere.
	Format string `key:"format" oneof:"auto|console|json"`
}

// Mounts returns what the bridge fronts: the entries of Upstreams, or the one
// upstream of the top level.
func (c *Config) Mounts() []Mount {
	if len(c.Upstreams) > 0 {
		return c.Upstreams
	}
	return []Mount{c.Mount}
}
