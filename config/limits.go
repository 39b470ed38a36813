package config

import (
	"fmt"
	"time"
)

// leastMemory is what a process needs, whoever its clients are.
const leastMemory Size = 32 << 20

// memory judges the limit of the whole process.
func (p *problems) memory(c *Config) {
	if size := c.Limits.Memory; size != 0 && size < leastMemory {
		p.add("limits.memory", "%s is too little for the bridge itself; use %s or more", size, leastMemory)
	}
	for i := range c.Upstreams {
		if c.Upstreams[i].Limits.Memory != c.Limits.Memory {
			p.add(fmt.Sprintf("%s[%d].limits.memory", upstreamsKey, i), "cannot be set for a single upstream: it is the whole process's; set it at the top level")
		}
	}
}

func (p *problems) times(t *Timeouts, label string) {
	for _, part := range []struct {
		key   string
		value time.Duration
	}{{"round", t.Round}, {"server-request", t.ServerRequest}} {
		if part.value > t.Flow {
			p.add(label+"timeouts."+part.key, "%s is longer than timeouts.flow (%s), which bounds it; lower this or raise that",
				formatDuration(part.value), formatDuration(t.Flow))
		}
	}
	if t.Poll == 0 {
		return
	}
	for _, kept := range []struct {
		key, what string
		value     time.Duration
	}{{"retention", "the answer", t.Retention}, {"session-idle", "the session", t.SessionIdle}, {"server-request", "the question", t.ServerRequest}} {
		if t.PollPause >= kept.value {
			p.add(label+"timeouts.poll-pause", "%s is not below timeouts.%s (%s): who comes back as told may find %s gone; lower this or raise that",
				formatDuration(t.PollPause), kept.key, formatDuration(kept.value), kept.what)
		}
	}
}

// Timeouts bound how long things may take.
type Timeouts struct {
	// How long connecting to the server may take: the connection, a forward proxy that lets it through, and the TLS handshake, each.
	Connect time.Duration `key:"connect" min:"100ms" max:"5m"`
	// How long a server over HTTP may take to say what it is, which is asked before a session opens. More is for servers that
	// come up with their first request; most clients wait a minute for their session, some ten seconds.
	Discover time.Duration `key:"discover" min:"100ms" max:"10m"`
	// How long a command may take from its start to its first answer.
	Start time.Duration `key:"start" min:"100ms" max:"10m"`
	// How long a command may be silent before it is pinged, and how long it may leave that unanswered before it is replaced. Calls
	// that it was given before, and that may still take their time, excuse it.
	Ping time.Duration `key:"ping" min:"100ms" max:"1h"`
	// How long the server may be silent during one round of a call. Progress starts it again. Requests that are passed on or relayed
	// over HTTP are held to it, too: until the response begins, and then, unless a legacy server may have asked its client something, from
	// message to message. Such a server may wait for a person, as long as timeouts.flow lasts; of a session that has no GET stream
	// here it is not known whether its server may.
	Round time.Duration `key:"round" min:"1s" max:"24h"`
	// How long a call may take altogether, the time that people need to answer included; also one that is passed on or relayed.
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
	// How long a client that is told to come back stays away: the result of a call reaches it that much later at most. Long ones let
	// many questions wait without connections. With timeouts.poll it must be below timeouts.retention,
	// timeouts.session-idle and timeouts.server-request: whoever comes back as told finds what was kept, and what was asked.
	PollPause time.Duration `key:"poll-pause" min:"100ms" max:"1h"`
	// How often a quiet event stream carries a comment, so that nothing between the bridge and the client closes it.
	KeepAlive time.Duration `key:"keep-alive" min:"1s" max:"10m"`
	// How often a client that wants progress gets some while its person decides, so that it does not give up.
	Heartbeat time.Duration `key:"heartbeat" min:"1s" max:"10m"`
	// How long a client may block one write before its connection is closed.
	Write time.Duration `key:"write" min:"100ms" max:"10m"`
	// How long a session may be idle before it is ended, from the end of its last request, call or stream on; it lasts as long as a response that
	// its client has not fetched (timeouts.retention). One that is in the store alone is found there for up to half as long again;
	// where a call of it waits there, or may in the eyes of another replica, as long as that may wait.
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
	// longest; while all have been used within a minute or have a call or a stream open, it is refused with 503. Who has an
	// eighth of them or more, with the same credentials or from one address, does not get the last eighth, and makes room for
	// others first. Who has more than one in 512 ends no session of whoever has fewer: its own, or none. As many streams at
	// most are handed on that never end, which are modern listens and GETs of sessions that a legacy server has.
	Sessions int `key:"sessions" min:"1" max:"10000000"`
	// Calls of one session that wait for an answer at the same time. One more ends the oldest. As many may wait, apart from
	// these, of others who call in it with credentials that it is not bound to.
	Flows int `key:"flows" min:"1" max:"100000"`
	// How often one call may be sent to the server again, be it with answers or because the server asked for that.
	Rounds int `key:"rounds" min:"1" max:"1000"`
	// How often of these the server may ask nothing and only want to be called again.
	StateOnlyRounds int `key:"state-only-rounds" min:"1" max:"1000"`
	// The longest request state of the server.
	RequestState Size `key:"request-state" min:"1KiB" max:"64MiB"`
	// Finished event streams of one session that were delivered, and can still be resumed. Those whose end nobody has fetched
	// yet are counted apart: as many as limits.in-flight and limits.flows together, and apart from these as many of others who
	// call in the session with credentials that it is not bound to. One more has the oldest be forgotten, and the log says so.
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
	// Subscriptions at the server: to list changes, which sessions with the same credentials share, and one for each session
	// that has subscribed to resources, which is two while another takes its place, and for two seconds afterwards. One more
	// ends one that nobody hears; where there is none, the session does not hear of changes, and the log says so, or its
	// resources/subscribe is refused. Who has an eighth of them or more, with credentials that the server does not vouch for
	// from one address, does not get the last eighth. Together with streams that are handed on, and answers of a legacy server
	// that have begun, there are in the whole process no more than a third of the file descriptors, by the same rule.
	Listens int `key:"listens" min:"1" max:"1000000"`
	// Requests under way at the same time in one session. One more is refused: with 429 over Streamable HTTP. As many may be,
	// apart from these, of others who call in it with credentials that it is not bound to. A task that the bridge hosts counts until
	// it is over; requests about tasks are always taken.
	InFlight int `key:"in-flight" min:"1" max:"100000"`
	// The same for all sessions and requests with the same credentials; until the server has accepted these, for all of one address that bring such ones. 0: as many as come.
	InFlightPrincipal int `key:"in-flight-principal" min:"0" max:"1000000"`
	// The same from one address, of IPv6 from one /64 network. Behind a proxy see trusted-proxies. 0: as many as come.
	InFlightAddress int `key:"in-flight-address" min:"0" max:"1000000"`
	// Requests that are at the server at the same time; more wait for their turn, of which each client has its own. Who
	// brings the same credentials gets no more of these places than are free for others, so one client alone gets half. All
	// endpoints with servers over HTTP together have no more than a third of the file descriptors; the log warns at the start.
	// What is brief waits for no call: what the bridge asks a server when a session is opened, and answers to its tasks and
	// their cancellation, have an eighth as many places besides, at least 2, of which one client alone gets half as well.
	Concurrency int `key:"concurrency" min:"1" max:"1000000"`
	// Processes of a command that serve one session each: with command-mode per-session, and of clients that are handed
	// to it as they are. One more session is refused. Who has an eighth of them or more does not get the last eighth.
	Children int `key:"children" min:"1" max:"10000"`
	// Messages in one batch, which only clients of 2025-03-26 send, also to a legacy server of their own.
	Batch int `key:"batch" min:"1" max:"10000"`
}

// Rates bound how many requests may come in what time.
type Rates struct {
	// Of one session: how many a second (20/s), a minute (600/m) or an hour (1000/h), and so many at once; off: as many as come.
	Session string `key:"session"`
	// Of all sessions and requests with the same credentials; until the server has accepted these, of all of one address that bring such ones.
	Principal string `key:"principal"`
	// From one address, of IPv6 from one /64 network, in the same form. Behind a proxy see trusted-proxies.
	Address string `key:"address"`
	// Where the tier of a client is found: claim:NAME in its token, once the server has accepted that, or header:NAME, which a
	// proxy in front must set and keep clients from setting, and which cannot be X-Forwarded-Plan or the like, as for roots.header.
	Tier string `key:"tier"`
	// By what the rates of a session and of credentials, limits.in-flight and limits.in-flight-principal are multiplied for
	// clients of a tier: gold: 4.
	Tiers map[string]string `key:"tiers" like:"{gold: 4}"`
}
