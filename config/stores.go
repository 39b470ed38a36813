package config

import (
	"strings"
	"time"
)

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

// Metrics is what is counted.
type Metrics struct {
	// Whether durations are told apart by tool, as the label gen_ai_tool_name: at most 200 names of each server, of those that it
	// has listed; all others count as _OTHER. It multiplies how many series there are.
	Tools string `key:"tools" oneof:"off|on"`
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
	// a crash of the machine can undo for the last second.
	Durability string `key:"durability" oneof:"strict|relaxed"`
	// Whether a store in a file writes to a journal beside it first, which is much faster. Without one, relaxed also means that a
	// crash of the machine may damage the file.
	Journal string `key:"journal" oneof:"on|off"`
	// How much clients may have this process keep there: sessions, calls that wait, and their responses for timeouts.retention, as long
	// as they are; a file may become twice as large. Who has an eighth or more, with the same credentials or from one
	// address, does not get the last eighth. Beyond that no question is asked. Each replica counts what it has kept itself since its
	// start. 0B: a third of what the disk has for a file, at most 4GiB; of Redis an eighth of its maxmemory, or else 1GiB. Not for memory:.
	Size Size `key:"size" min:"0B" max:"1048576GiB"`
	// What calls with questions do while Redis cannot be reached: wait until it is back, as long as they may, or fail with an error. Calls
	// without questions go on in any case.
	Outage string `key:"outage" oneof:"wait|fail"`
	// How long a question waits in memory while its client is not connected, and a session that nobody uses: then they are in the store
	// alone until an answer, a request or a deadline brings them back. 0s: they stay in memory. Not for memory:.
	Unload time.Duration `key:"unload" min:"0s" max:"24h"`
}

// Kind says what kind of store the URL names, "memory", "file" or "redis", and what the URL
// says after its scheme; "" for what is none.
func (s *Store) Kind() (kind, rest string) {
	scheme, rest, _ := strings.Cut(s.URL, ":")
	switch scheme {
	case "memory", "file":
		return scheme, rest
	case "redis", "rediss", "redis+sentinel", "redis+cluster":
		return "redis", rest
	}
	return "", rest
}

// Shared reports whether several bridges can have the store in common.
func (s *Store) Shared() bool {
	kind, _ := s.Kind()
	return kind == "redis"
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
