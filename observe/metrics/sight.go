package metrics

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
)

// State is what is under way at one mount.
type State struct {
	Mount        string
	Ready        bool
	Sessions     map[Speaks]int
	Streams      map[Stream]int
	SessionLimit int
	FlowLimit    int
	InFlight     int            // calls that wait for the server
	Suspended    map[string]int // calls that wait for others, by whom
	Oldest       float64        // age of the oldest of those, in seconds
	Connections  int            // to the server that are open
	Listens      int            // at the server that are open
	Reconnecting int            // listens that are not
	Children     int            // processes of its command that serve one session each
	ChildLimit   int            // 0: the server is no command
	Shared       int            // processes of its command that serve everybody
	TokenExpires time.Time      // zero: there is no token, or nobody said
	Server       Server
}

// Speaks is what sessions are counted by.
type Speaks struct {
	Version   mcp.Version
	Transport observe.Transport
}

// Server is what a server says of itself; "" where it is not known.
type Server struct{ Era, Versions, Name, Version, Draft string }

// Stream is what streams are counted by.
type Stream struct {
	Kind  string // call, get, sse or websocket
	State string // attached, detached or ended
}

// looks are the metrics that are read at each scrape.
var looks = []metric{sessionsOpen, streams, sessionLimit, flowLimit, callsInFlight, flowsSuspended, oldestFlow, upstreamReady, listens, connections, processes, childrenLimit, upstreamInfo, tokenExpiry}

// memory are the metrics of the process's memory, read at each scrape, too.
var memory = []metric{memoryUsed, memoryLimit, memoryRefused, storeUp}

func lookedAt(name string) bool {
	named := func(m metric) bool { return m.name == name }
	return slices.ContainsFunc(looks, named) || slices.ContainsFunc(memory, named)
}

// Memory tells how much of the process's memory peers hold.
type Memory interface {
	Used() int64
	Limit() int64
	Refused() int64
}

// Memory has m asked at each scrape. It is to be called once.
func (r *Registry) Memory(m Memory) {
	read := func(value func() int64) func() float64 { return func() float64 { return float64(value()) } }
	r.prometheus.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: memoryUsed.name, Help: memoryUsed.help}, read(m.Used)),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: memoryLimit.name, Help: memoryLimit.help}, read(m.Limit)),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: memoryRefused.name, Help: memoryRefused.help}, read(m.Refused)),
	)
}

// Store has up asked at each scrape whether the store can be reached. It is to be called
// once.
func (r *Registry) Store(up func() bool) {
	r.prometheus.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: storeUp.name, Help: storeUp.help}, func() float64 {
		if up() {
			return 1
		}
		return 0
	}))
}

// sight collects them.
type sight struct {
	look  func() []State
	descs map[string]*prometheus.Desc

	mu      sync.Mutex
	servers map[string]*servers // by mount
}

// servers are what servers of one mount said of themselves.
type servers struct{ names, releases, drafts names }

// maxServers bounds each of these.
const maxServers = 8

// saidOf returns what is known of the servers of a mount.
func (s *sight) saidOf(mount string) *servers {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.servers == nil {
		s.servers = map[string]*servers{}
	}
	if s.servers[mount] == nil {
		s.servers[mount] = &servers{names{most: maxServers}, names{most: maxServers}, names{most: maxServers}}
	}
	return s.servers[mount]
}

// info returns the labels for what a server says of itself: its words only as far as
// there is room for them.
func (k *servers) info(said *Server) []string {
	told := func(n *names, word string) string {
		if word == "" {
			return ""
		}
		return n.word(word)
	}
	return []string{clean(said.Era), versionWords(said.Versions), told(&k.names, said.Name), told(&k.releases, said.Version), told(&k.drafts, said.Draft)}
}

// versionWords returns the label for a list of revisions.
func versionWords(list string) string {
	var known []string
	for v := range strings.FieldsSeq(list) {
		if w := versionWord(mcp.Version(v)); !slices.Contains(known, w) {
			known = append(known, w)
		}
	}
	return strings.Join(known, " ")
}

func newSight(look func() []State) *sight {
	s := &sight{look: look, descs: map[string]*prometheus.Desc{}}
	for _, m := range looks {
		s.descs[m.name] = prometheus.NewDesc(m.name, m.help, m.labels, nil)
	}
	return s
}

// Describe implements prometheus.Collector.
func (s *sight) Describe(out chan<- *prometheus.Desc) {
	for _, d := range s.descs {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (s *sight) Collect(out chan<- prometheus.Metric) {
	for _, state := range s.look() {
		set := func(m metric, value float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(s.descs[m.name], prometheus.GaugeValue, value, append([]string{state.Mount}, labels...)...)
		}
		for by, n := range state.Sessions {
			set(sessionsOpen, float64(n), versionWord(by.Version), by.Transport.String())
		}
		for by, n := range state.Streams {
			set(streams, float64(n), by.Kind, by.State)
		}
		for who, n := range state.Suspended {
			set(flowsSuspended, float64(n), who)
		}
		set(sessionLimit, float64(state.SessionLimit))
		set(flowLimit, float64(state.FlowLimit))
		set(callsInFlight, float64(state.InFlight))
		set(oldestFlow, state.Oldest)
		set(upstreamReady, truth(state.Ready))
		set(listens, float64(state.Listens), "open")
		set(listens, float64(state.Reconnecting), "reconnecting")
		if state.ChildLimit == 0 {
			set(connections, float64(state.Connections), "open")
		} else {
			set(processes, float64(state.Children), "session")
			set(processes, float64(state.Shared), "shared")
			set(childrenLimit, float64(state.ChildLimit))
		}
		if server := &state.Server; server.Era != "" {
			set(upstreamInfo, 1, s.saidOf(state.Mount).info(server)...)
		}
		if !state.TokenExpires.IsZero() {
			set(tokenExpiry, float64(state.TokenExpires.Unix()))
		}
	}
}

func truth(set bool) float64 {
	if set {
		return 1
	}
	return 0
}
