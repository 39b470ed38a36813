package mount

import (
	"cmp"
	"net/url"
	"regexp"
	"strings"

	"github.com/mcpbridge/bridge/authorize"
	"github.com/mcpbridge/bridge/bridge"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/dialect"
	"github.com/mcpbridge/bridge/internal/passthrough"
	"github.com/mcpbridge/bridge/internal/resource"
	"github.com/mcpbridge/bridge/internal/signin"
	"github.com/mcpbridge/bridge/internal/turns"
	"github.com/mcpbridge/bridge/internal/vouch"
	"github.com/mcpbridge/bridge/legacy"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/observe"
	"github.com/mcpbridge/bridge/observe/tap"
	"github.com/mcpbridge/bridge/upstream"
	"github.com/mcpbridge/bridge/upstream/streamable"
)

// Options says what to mount. Only Upstream.URL, Caller or Command is required.
type Options struct {
	Upstream streamable.Options
	Caller   upstream.Caller // instead of Upstream, for servers that are neither HTTP nor a process
	Command  *Command        // instead of Upstream, for servers that are a process
	// Draft says how to speak to servers of a draft; nil: as they say that they
	// speak. Whoever brings a Caller gives it the same one.
	Draft  *dialect.Dialect
	Probe  negotiate.Options
	Legacy legacy.Options
	Bridge bridge.Options // Upstream, Catalog, ListsAsk, Hint and Modern are filled in
	// Watch is told what ends here; nil: nobody is.
	Watch observe.Watcher
	Tap   *tap.Tap // keeps messages while somebody looks; needed with Watch
	// RefuseModern answers modern requests as a legacy server would, instead
	// of relaying them (Q1).
	RefuseModern bool
	// Relay says which legacy clients are handed to a server that speaks their
	// revision.
	Relay negotiate.RelayPolicy
	// Concurrency is how many requests are at the server at the same time; the others
	// wait for their turn; 4096.
	Concurrency int
	// DropAuthorization keeps clients' credentials from the server. Credentials
	// in Upstream.Header do so in any case.
	DropAuthorization bool
	// SignIn has the bridge sign in to a server over HTTP itself; nil: its clients
	// do, if anybody.
	SignIn *signin.Account
	// Behalf says that clients' tokens end here, and how the bridge acts for them; nil:
	// they do not, or SignIn says it.
	Behalf *signin.Behalf
	// Resource is the endpoint as OAuth sees it; nil: it does not.
	Resource *resource.Resource

	// Servers is what the process knows of its servers; nil: this mount is alone with its own.
	Servers *vouch.Servers

	vouched *vouch.Credentials // of clients; nil: the server does not see them
	away    signal             // a request found nobody
	other   signal             // or somebody else than who was there
	brief   *turns.Queue       // admits what must not wait for calls
}

const defaultConcurrency = 4096

// admitInTurn has all ways to the server admit requests from one queue, but for the brief
// ones, which have another.
func (o *Options) admitInTurn() {
	places := cmp.Or(o.Concurrency, defaultConcurrency)
	o.Legacy.Turns = turns.New(places)
	o.brief = turns.New(max(leastBrief, places/briefShare))
}

// Brief requests have a share of as many places as others have, and never fewer than two, so
// that nobody has all of them.
const (
	briefShare = 8
	leastBrief = 2
)

// keepsCredentials reports whether no credentials of clients reach the server. A
// command has no way to be told them.
func (o *Options) keepsCredentials() bool {
	policy := o.Upstream.Policy()
	return o.Command != nil || o.DropAuthorization || o.SignIn != nil || o.Behalf != nil && o.Behalf.Exchange == nil || policy.KeepsCredentials()
}

// limitsOf returns what bounds modern requests.
func limitsOf(opt *Options) passthrough.Limits {
	return passthrough.Limits{Round: opt.Bridge.Limits.Flow.Round, Call: opt.Bridge.Limits.Flow.Call}
}

// Limits says what bounds sessions and their calls.
type Limits struct {
	Sessions int
	Flows    int // that wait, of one session
}

// nameKept gives a process whose sessions are kept a name among others with that store, and has what
// is kept belong to the server: one that is mounted in its place is not told what clients answered to
// another, nor what that one said.
func (o *Options) nameKept() (scope string) {
	if o.Legacy.Store != nil && o.Legacy.Replica == 0 {
		o.Legacy.Replica = downstream.NewReplicaID()
	}
	o.Bridge.Replica = o.Legacy.Replica
	o.Legacy.StoreScope += "\n" + o.serverName()
	return o.Legacy.StoreScope
}

// serverName names the server as all replicas do that are told of it in the same way: a command by
// its words, any other one by its address. What may change while it is the same server, be it
// credentials or its version, is left out. Stores show digests of it only.
func (o *Options) serverName() string {
	if o.Command != nil {
		words := append([]string{o.Command.Stdio.Command}, o.Command.Stdio.Args...)
		for i, word := range words {
			words[i] = release.ReplaceAllString(word, "")
		}
		return strings.Join(words, "\x00")
	}
	u, err := url.Parse(o.Upstream.URL)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.ForceQuery = nil, "", false
	return authorize.Address(u.String())
}

// release is the version at the end of a word, as packages (name@1.2.3, name==1.2.3) and images (name:1.2.3) have it.
var release = regexp.MustCompile(`(@v?\d+(\.\d+){0,2}|[:=]=?v?\d+(\.\d+){1,2})([-+][\w.+-]*)?$`)
