// Package config owns everything about the bridge that a person can set: the
// settings themselves, their defaults, where they are read from (a YAML file,
// BRIDGE_… environment variables, command-line flags, all under the same names)
// and what makes a value right. It knows nothing of the packages that obey the
// settings; only cmd/bridge imports it and hands the values on.
package config

import "time"

// Config is the whole configuration of one process.
//
// The comments of the fields below are the documentation: this file is embedded
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
	// interface. Clients that send no Origin header, which is every client but a browser, may call in any case.
	AllowedOrigins []string `key:"allowed-origins"`
	// The host names under which clients may address the bridge, as HOST or HOST:PORT; "*" stands for any. Empty: a
	// bridge that listens on loopback takes only loopback names, which stops DNS rebinding; one that listens elsewhere
	// takes any name.
	AllowedHosts []string `key:"allowed-hosts"`
	// The proxies whose word on a client's address is believed, as IP addresses, CIDR blocks, or unix for whoever comes
	// over a Unix socket. From anyone else Forwarded and X-Forwarded-… headers are ignored; to the server they never go.
	TrustedProxies []string `key:"trusted-proxies"`
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
	// What is logged, and how.
	Log Log `key:"log"`
	// Where sessions are kept, so that they outlive the process.
	Store Store `key:"store"`
	// How several bridges that share a store in Redis reach each other, so that any of them can serve any request.
	Replica Replica `key:"replica"`
	// A second listener, for the people who run the bridge: metrics for machines, and a page that shows what is going on.
	// Nothing of it is served to clients.
	Admin Admin `key:"admin"`
	// A directory in which both hops of every session are recorded from the start on, in a file of JSON Lines that "bridge replay"
	// reads. Values are replaced by their kinds unless admin.payloads is on; tokens and request state always are. Empty: nowhere.
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
	Command []string `key:"command" secret:"true"`
	// What a command is given of the bridge's environment, besides what every program needs (PATH, HOME, LANG and the like):
	// NAME, NAME* for all that begin so, * for all, or NAME=VALUE. What begins with BRIDGE_ is never handed on.
	// With bridge stdio, which a client starts in the server's place, empty stands for *.
	CommandEnv []string `key:"command-env" secret:"true"`
	// Headers added to every request to the server, as NAME: VALUE. A header that is set here replaces the client's,
	// Authorization, Cookie and User-Agent included.
	Headers map[string]string `key:"headers" secret:"true"`
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

// Questions say what becomes of a question of the server that a client cannot be asked.
type Questions struct {
	// What answers for the client: page asks a person in a browser, decline says no for everybody, default accepts
	// with the defaults of the question's form where it has them all, error ends the call and says what the client lacks.
	Policy string `key:"policy" named:"section" oneof:"page|decline|default|error"`
	// The address under which people reach the page, as their browsers see it; its path is then the bridge's. Empty: the
	// page is on a port of the loopback interface, for people at this machine.
	URL string `key:"url" url:"true"`
	// What opens the page by itself when a question comes: auto the browser of the person at this machine, where there is one
	// and the page and its clients are on this machine; off nothing; anything else is a command, which gets the address as its
	// last argument. There is at most one tab for a question, and none while another one waits.
	Open string `key:"open"`
	// How long a call waits for the person before it is answered with the page's link. The same call again picks the
	// answer up. Shorter than the time that the client gives a call.
	Wait time.Duration `key:"wait" min:"0s" max:"24h"`
	// How long clients wait for a call before they give it up, by the beginning of the name that they give themselves.
	// Shortly before, a call whose person has not answered yet is answered with what is pending, and the same call
	// again goes on from there. 0s takes a client out that is known: claude-ai (240s), Java SDK MCP Client and
	// spring-ai-mcp-client (20s).
	Patience map[string]string `key:"patience"`
}

// Roots are the folders that servers are told of for clients that have no roots of their own. A reload of the configuration
// counts from the next call on, in open sessions too.
type Roots struct {
	// Everybody's roots, as file:// URIs of folders that exist.
	List []string `key:"list" named:"section"`
	// The header of a request that says whose roots it gets. Something in front of the bridge must set it, and keep clients from
	// setting it themselves.
	Header string `key:"header"`
	// Other roots by the value of that header: file:// URIs, with spaces between them. They take the place of everybody's.
	By map[string]string `key:"by"`
}

// Sampling is the model that answers for clients without one.
type Sampling struct {
	// The API that it speaks, be it the vendor's or that of a server of one's own; off: there is no model.
	Provider string `key:"provider" oneof:"off|openai|anthropic"`
	// Where the API is: of openai with the version, like http://127.0.0.1:11434/v1, of anthropic without. Empty: the vendor's.
	URL string `key:"url" url:"true"`
	// The name of the model.
	Model string `key:"model"`
	// Other models for the hints of servers: a part of a hint's name, and the model that it stands for.
	Models map[string]string `key:"models"`
	// A file with the key for the API.
	KeyFile string `key:"key-file"`
	// Whether a person must approve each request, on the page of questions.
	Approve string `key:"approve" oneof:"off|on"`
	// Tokens that one answer may have.
	MaxTokens int `key:"max-tokens" min:"1" max:"10000000"`
	// Requests of one session.
	PerSession int `key:"per-session" min:"1" max:"1000000"`
	// Requests of all sessions in 24 hours.
	PerDay int `key:"per-day" min:"1" max:"100000000"`
	// How long the model may take.
	Timeout time.Duration `key:"timeout" min:"1s" max:"1h"`
}

// ServerTLS is the listener's certificate.
type ServerTLS struct {
	// A file with the certificate chain, PEM.
	Cert string `key:"cert"`
	// A file with the private key of the certificate, PEM.
	Key string `key:"key"`
}

// ClientTLS is how the bridge and an upstream know each other.
type ClientTLS struct {
	// A file with the certificates to trust besides the system's, PEM.
	CA string `key:"ca"`
	// A file with the certificates to trust instead of the system's, PEM.
	CAOnly string `key:"ca-only"`
	// A file with the certificate that the bridge shows the server, PEM.
	Cert string `key:"cert"`
	// A file with the private key of that certificate, PEM.
	Key string `key:"key"`
	// The name to expect in the server's certificate. Empty: the host of the URL.
	ServerName string `key:"server-name"`
}

// Log is what is logged, and how.
type Log struct {
	// The least important level that is logged.
	Level string `key:"level" oneof:"trace|debug|info|warn|error"`
	// The form of the log on standard error: console for people, json for machines, auto for console on a terminal
	// and json elsewhere.
	Format string `key:"format" oneof:"auto|console|json"`
}

// Admin is the listener for the people who run the bridge.
type Admin struct {
	// Where to serve them: HOST:PORT on the loopback interface, or unix:PATH for a Unix socket. Any other address also needs
	// admin.tls.cert and admin.token-file. Empty: nowhere.
	Listen string `key:"listen"`
	// A file with the token that opens that listener, at least 16 characters. Empty: a random one, which is shown at the
	// start as part of the address to open.
	TokenFile string `key:"token-file"`
	// A file of a few KiB in which to count which clients came in the last 30 days, and what for; "bridge report" reads it. Empty:
	// nowhere. It needs no listener.
	Report string `key:"report"`
	// Whether its pages and recordings have what messages say. Tokens and request state are shown nowhere.
	Payloads string `key:"payloads" oneof:"off|on"`
	// Whether its pages let people end calls and sessions and set the level of the log.
	Actions string `key:"actions" oneof:"off|on"`
	// How to serve it by HTTPS. Its host names are those of the certificate.
	TLS ServerTLS `key:"tls"`
}

// Store is where sessions are kept.
type Store struct {
	// Where sessions of Streamable HTTP are kept: memory: ends them with the process; file:PATH lets them go on after a restart
	// on the same machine; redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE], rediss:// with TLS,
	// redis+sentinel://HOST,HOST/NAME and redis+cluster://HOST,HOST also elsewhere.
	URL string `key:"url" secret:"true"`
	// A file with the keys that seal what is kept: 32 bytes in base64, one key a line. The first one seals, all of them open. A
	// store in a file makes its own where there is none, as PATH.keys; Redis needs one.
	Keys string `key:"keys"`
	// When a store in a file has kept something: strict once it is on the disk, relaxed once the operating system has it, which
	// a crash of the machine can undo for the last second, and may damage the file.
	Durability string `key:"durability" oneof:"strict|relaxed"`
	// What calls with questions do while Redis cannot be reached: wait until it is back, as long as they may, or fail with an error. Calls
	// without questions go on in any case.
	Outage string `key:"outage" oneof:"wait|fail"`
}

// Replica says how bridges that share a store reach each other.
type Replica struct {
	// Where to listen for the other replicas: HOST:PORT. They prove themselves with store.keys, and what passes between them is
	// encrypted. Needed where several bridges share a store in Redis.
	Listen string `key:"listen"`
	// Where the others reach this replica: HOST:PORT, where HOST is a name or an IP address of this machine or pod. Empty: as replica.listen
	// says, if that names a host.
	Address string `key:"address"`
}

// Timeouts bound how long things may take.
type Timeouts struct {
	// How long connecting to the server may take, the TLS handshake included.
	Connect time.Duration `key:"connect" min:"100ms" max:"5m"`
	// How long a command may take from its start to its first answer.
	Start time.Duration `key:"start" min:"100ms" max:"10m"`
	// How long a command may be silent before it is pinged, and how long it may leave that unanswered before it is replaced. Calls
	// that it was given before, and that may still take their time, excuse it.
	Ping time.Duration `key:"ping" min:"100ms" max:"1h"`
	// How long the server may be silent during one round of a call. Progress starts it again.
	Round time.Duration `key:"round" min:"1s" max:"24h"`
	// How long a call may take altogether, the time that people need to answer included.
	Flow time.Duration `key:"flow" min:"1s" max:"168h"`
	// How long a client may take to answer one question of the server.
	ServerRequest time.Duration `key:"server-request" min:"1s" max:"168h"`
	// How long a call goes on at least when its client has gone and has no way back to the answer.
	Grace time.Duration `key:"grace" min:"1s" max:"168h"`
	// How long a response is held back in the hope that it can be plain JSON; a slower one becomes an event stream.
	Commit time.Duration `key:"commit" min:"1ms" max:"1m"`
	// How long the event stream of a call may last before it is ended and the client told to come back for the rest; 0s: as
	// long as the call. For networks that cut long responses, and only for clients of 2025-11-25, which alone know
	// of this: one that does not come back loses its answer, and the Java SDK takes the hint for an error.
	Poll time.Duration `key:"poll" min:"0s" max:"1h"`
	// How often a quiet event stream carries a comment, so that nothing between the bridge and the client closes it.
	KeepAlive time.Duration `key:"keep-alive" min:"1s" max:"10m"`
	// How often a client that wants progress gets some while its person decides, so that it does not give up.
	Heartbeat time.Duration `key:"heartbeat" min:"1s" max:"10m"`
	// How long a client may block one write before its connection is closed.
	Write time.Duration `key:"write" min:"100ms" max:"10m"`
	// How long a session may be idle before it is ended.
	SessionIdle time.Duration `key:"session-idle" min:"1s" max:"720h"`
	// How long the events of a finished response can still be fetched by a client that lost its connection.
	Retention time.Duration `key:"retention" min:"1s" max:"24h"`
	// How long running calls may go on after the bridge was asked to stop.
	Drain time.Duration `key:"drain" min:"0s" max:"1h"`
	// How long sessions may go on under the settings that they began with, after a reload of the configuration changed
	// or removed these.
	Handover time.Duration `key:"handover" min:"0s" max:"168h"`
}

// Limits bound how large and how many things may get. What exceeds one is
// refused with an error that names it.
type Limits struct {
	// The memory of the whole process. Half of it is for what clients and servers make the bridge hold: messages, sessions,
	// waiting calls, events. Near that bound newcomers, and whoever holds most, are refused with 503 or 429, before those who
	// hold little. 0B: three quarters of what the control group allows, or else half of the machine's. Not for a single upstream.
	Memory Size `key:"memory" min:"0B" max:"1024GiB"`
	// The longest message of a client.
	MessageSize Size `key:"message-size" min:"1KiB" max:"1GiB"`
	// The longest message of the server.
	ResponseSize Size `key:"response-size" min:"1KiB" max:"1GiB"`
	// Sessions that are open at the same time. One more ends the oldest that was never used, or else the one that was idle
	// longest; while all have been used within a minute or have a call or a stream open, it is refused with 503.
	Sessions int `key:"sessions" min:"1" max:"10000000"`
	// Calls of one session that wait for an answer at the same time. One more ends the oldest.
	Flows int `key:"flows" min:"1" max:"100000"`
	// How often one call may be sent to the server again, be it with answers or because the server asked for that.
	Rounds int `key:"rounds" min:"1" max:"1000"`
	// How often of these the server may ask nothing and only want to be called again.
	StateOnlyRounds int `key:"state-only-rounds" min:"1" max:"1000"`
	// The longest request state of the server.
	RequestState Size `key:"request-state" min:"1KiB" max:"64MiB"`
	// Finished event streams of one session that can still be resumed.
	Streams int `key:"streams" min:"1" max:"100000"`
	// Events that are kept of one stream for a client that lost its connection.
	Events int `key:"events" min:"1" max:"1000000"`
	// The size of those events together.
	EventBytes Size `key:"event-bytes" min:"1KiB" max:"1GiB"`
	// Messages kept for a session that listens to none at the moment: list changes and updates of resources.
	Pending int `key:"pending" min:"1" max:"100000"`
	// What a client says of itself with initialize, and its Authorization, which a session keeps: their size together.
	Declaration Size `key:"declaration" min:"1KiB" max:"64MiB"`
	// Resources that one session may be subscribed to. Their URIs may have 1 KiB on average.
	Subscriptions int `key:"subscriptions" min:"1" max:"100000"`
	// Subscriptions to list changes at the server, which sessions with the same credentials share. One more ends one that
	// nobody hears; where there is none, the session does not hear of changes, and the log says so.
	Listens int `key:"listens" min:"1" max:"1000000"`
	// Requests under way at the same time in one session. One more is refused: with 429 over Streamable HTTP.
	InFlight int `key:"in-flight" min:"1" max:"100000"`
	// Processes of a command that serve one session each: with command-mode per-session, and of clients that are handed
	// to it as they are. One more session is refused.
	Children int `key:"children" min:"1" max:"10000"`
	// Messages in one batch, which only clients of 2025-03-26 send.
	Batch int `key:"batch" min:"1" max:"10000"`
}

// Rates bound how many requests may come in what time.
type Rates struct {
	// Of one session: how many a second (20/s), a minute (600/m) or an hour (1000/h), and so many at once; off: as many as come.
	Session string `key:"session"`
	// Of all sessions and requests with the same credentials, in the same form.
	Principal string `key:"principal"`
	// From one address, in the same form. Behind a proxy see trusted-proxies.
	Address string `key:"address"`
	// Where the tier of a client is found: claim:NAME in its token, which the bridge does not verify, or header:NAME, which a
	// proxy in front must set and keep clients from setting.
	Tier string `key:"tier"`
	// By what the rates of a session and of credentials are multiplied for clients of a tier: gold: 4.
	Tiers map[string]string `key:"tiers"`
}

// Default returns the configuration that holds when nothing is set. It lacks an
// upstream, so it does not pass Validate.
func Default() Config {
	return Config{
		Listen:        "127.0.0.1:8080",
		ProxyProtocol: "off",
		HTTP:          "lean",
		Park:          "on",
		HeapFloor:     32 << 20,
		Admin:         Admin{Payloads: "off", Actions: "off"},
		Log:           Log{Level: "info", Format: "auto"},
		Store:         Store{URL: "memory:", Durability: "strict", Outage: "wait"},
		Mount:         Mount{Path: "/mcp", Policy: defaultPolicy()},
	}
}

func defaultPolicy() Policy {
	return Policy{
		Profile:       "strict",
		NonObject:     "wrap",
		MultiSelect:   "expand",
		Tasks:         "hide",
		Modern:        "pass",
		Authorization: "relay",
		Auth: Auth{
			Mode: "relay", Grant: "auto", Store: "auto", ClientName: "MCP Bridge", Token: "access", Wait: 45 * time.Second, Share: "no",
		},
		LegacyRelay:  "auto",
		CommandMode:  "shared",
		Session:      "optional",
		Draft:        "auto",
		DraftAnswers: "bare",
		Legacy:       Legacy{AlwaysStream: "off"},
		Questions:    Questions{Policy: "error", Open: "auto", Wait: 20 * time.Second},
		Sampling:     Sampling{Provider: "off", Approve: "off", MaxTokens: 4096, PerSession: 100, PerDay: 10_000, Timeout: 2 * time.Minute},
		Timeouts: Timeouts{
			Connect:       10 * time.Second,
			Start:         25 * time.Second,
			Ping:          30 * time.Second,
			Round:         2 * time.Minute,
			Flow:          30 * time.Minute,
			ServerRequest: 10 * time.Minute,
			Grace:         time.Minute,
			Commit:        2 * time.Second,
			KeepAlive:     15 * time.Second,
			Heartbeat:     15 * time.Second,
			Write:         10 * time.Second,
			SessionIdle:   30 * time.Minute,
			Retention:     5 * time.Minute,
			Drain:         30 * time.Second,
			Handover:      time.Hour,
		},
		Rates: Rates{Session: "off", Principal: "off", Address: "off"},
		Limits: Limits{
			MessageSize:     4 << 20,
			ResponseSize:    16 << 20,
			Sessions:        10_000,
			Flows:           32,
			Rounds:          20,
			StateOnlyRounds: 10,
			RequestState:    1 << 20,
			Streams:         16,
			Events:          256,
			EventBytes:      1 << 20,
			Pending:         64,
			Declaration:     64 << 10,
			Subscriptions:   256,
			Listens:         1024,
			InFlight:        256,
			Children:        32,
			Batch:           64,
		},
	}
}

// Mounts returns what the bridge fronts: the entries of Upstreams, or the one
// upstream of the top level.
func (c *Config) Mounts() []Mount {
	if len(c.Upstreams) > 0 {
		return c.Upstreams
	}
	return []Mount{c.Mount}
}
