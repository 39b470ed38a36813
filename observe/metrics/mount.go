package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/observe"
)

// Mount takes the reports of one mount. It implements observe.Watcher; a mount that a
// reload replaces goes on counting here.
type Mount struct {
	calls    *children[callKey, prometheus.Observer]
	requests *children[requestKey, prometheus.Observer]
	ends     *children[endKey, prometheus.Counter]
	rounds   *children[string, prometheus.Observer]
	sessions *children[sessionKey, prometheus.Observer]
	causes   *children[string, prometheus.Counter]
	clients  *clientele
	tools    *toolNames // nil: tools are not told apart

	outcomes     [observe.Kinds][observe.Outcomes]prometheus.Counter
	questionTime [observe.Kinds]prometheus.Observer
	reasons      [observe.Reasons]prometheus.Counter
	refusals     [observe.Refusals]prometheus.Counter
	resumptions  [observe.Resumptions]prometheus.Counter
	breaker      [observe.Kinds]prometheus.Counter
	modern       prometheus.Counter
	relayed      prometheus.Counter
	repeats      [observe.Repeats]prometheus.Counter
	phases       [observe.Phases]prometheus.Observer
	hits, misses prometheus.Counter
	losses       *children[string, prometheus.Counter]
	oauth        *children[oauthKey, prometheus.Counter]
}

// The keys of children: label values that are constants, but for the mount's.
type (
	callKey struct {
		method, version, operation, fault, code, tool string
		transport                                     observe.Transport
		http                                          observe.HTTP
	}
	requestKey struct {
		method, version, operation, fault, code, result, tool string
		question                                              bool
		transport                                             observe.Transport // of questions
		http                                                  observe.HTTP
	}
	oauthKey struct{ step, outcome string }
	endKey   struct {
		end   observe.End
		cause string
	}
	sessionKey struct {
		version   string
		fault     string
		transport observe.Transport
		reason    observe.Reason
	}
)

var _ observe.Watcher = (*Mount)(nil)

func (r *Registry) newMount(path string, server observe.Server) *Mount {
	m := &Mount{clients: newClientele(r, path), tools: r.tools()}
	m.calls = newChildren(func(k callKey) prometheus.Observer {
		return r.histogram(serverOperation).WithLabelValues(path, k.method, k.version, k.operation, k.fault, k.code,
			network(k.transport), protocol(k.transport), k.http.String(), k.tool, k.transport.String())
	})
	m.requests = newChildren(func(k requestKey) prometheus.Observer {
		at, name := server, protocolOf(&server)
		if k.question { // it went to a client, over its own transport
			at, name = observe.Server{Transport: network(k.transport)}, protocol(k.transport)
		}
		return r.histogram(clientOperation).WithLabelValues(path, k.method, k.version, k.operation, k.fault, k.code,
			at.Transport, name, k.http.String(), k.tool, at.Address, at.Port, k.result)
	})
	m.ends = newChildren(func(k endKey) prometheus.Counter {
		return r.counter(flowsEnded).WithLabelValues(path, k.end.String(), k.cause)
	})
	m.rounds = newChildren(func(method string) prometheus.Observer {
		return r.histogram(rounds).WithLabelValues(path, method)
	})
	m.sessions = newChildren(func(k sessionKey) prometheus.Observer {
		return r.histogram(serverSession).WithLabelValues(path, k.version, network(k.transport), protocol(k.transport), k.fault, k.reason.String())
	})
	m.causes = newChildren(func(cause string) prometheus.Counter {
		return r.counter(upstreamFailures).WithLabelValues(path, cause)
	})
	m.losses = newChildren(func(what string) prometheus.Counter { return r.counter(downlevel).WithLabelValues(path, what) })
	m.oauth = newChildren(func(k oauthKey) prometheus.Counter {
		return r.counter(oauthSteps).WithLabelValues(path, k.step, k.outcome)
	})
	m.hits, m.misses = r.counter(cacheRequests).WithLabelValues(path, "hit"), r.counter(cacheRequests).WithLabelValues(path, "miss")
	m.modern = r.counter(passed).WithLabelValues(path, "modern")
	m.relayed = r.counter(passed).WithLabelValues(path, "legacy")
	m.arrays(r, path)
	return m
}

// arrays resolves what is counted by the words of package observe: those who read a
// counter see it at zero before the first event.
func (m *Mount) arrays(r *Registry, path string) {
	for k := range observe.Kinds {
		m.questionTime[k] = r.histogram(questionTime).WithLabelValues(path, k.String())
		m.breaker[k] = r.counter(breaker).WithLabelValues(path, k.String())
		for o := range observe.Outcomes {
			m.outcomes[k][o] = r.counter(questions).WithLabelValues(path, k.String(), o.String())
		}
	}
	for reason := range observe.Reasons {
		m.reasons[reason] = r.counter(sessionsEnded).WithLabelValues(path, reason.String())
	}
	for refusal := range observe.Refusals {
		m.refusals[refusal] = r.counter(refused).WithLabelValues(path, strconv.Itoa(refusal.Status()), refusal.String())
	}
	for why := range observe.Repeats {
		m.repeats[why] = r.counter(repeats).WithLabelValues(path, why.String())
	}
	for phase := range observe.Phases {
		m.phases[phase] = r.histogram(overhead).WithLabelValues(path, phase.String())
	}
	for outcome := range observe.Resumptions {
		m.resumptions[outcome] = r.counter(resumptions).WithLabelValues(path, outcome.String())
	}
}

// network is the conventions' network.transport.
func network(t observe.Transport) string {
	if t == observe.Stdio {
		return "pipe"
	}
	return "tcp"
}

// protocol is the conventions' network.protocol.name.
func protocol(t observe.Transport) string {
	switch t {
	case observe.Stdio, observe.NoTransport:
		return ""
	case observe.WebSocket:
		return "websocket"
	}
	return "http"
}

func protocolOf(s *observe.Server) string {
	if s.Transport == "" || s.Transport == "pipe" {
		return ""
	}
	return "http"
}

// CallEnded implements observe.Watcher.
func (m *Mount) CallEnded(c observe.CallEnd) {
	method := methodWord(c.Method)
	k := callKey{method: method, version: versionWord(c.Version), operation: operation(method), fault: fault(&c), code: codeWord(c.Code), transport: c.Transport, http: c.HTTP}
	if m.tools != nil {
		k.tool = m.tools.word(c.Tool)
	}
	m.calls.of(k).Observe(c.Took.Seconds())
	m.ends.of(endKey{c.End, c.Cause}).Inc()
	if c.Rounds > 0 {
		m.rounds.of(method).Observe(float64(c.Rounds))
	}
}

// fault is the conventions' error.type for a call: "" for one without an error.
func fault(c *observe.CallEnd) string {
	switch {
	case c.ToolError:
		return "tool_error"
	case isServersError(c.Code):
		return codeWord(c.Code)
	case c.End == observe.Complete, c.Code != 0:
		return ""
	}
	return c.End.String()
}

// QuestionEnded implements observe.Watcher.
func (m *Mount) QuestionEnded(q observe.Question) {
	if q.Kind >= observe.Kinds {
		return // it has no word, so that nothing was asked
	}
	m.outcomes[q.Kind][q.Outcome].Inc()
	if q.Elsewhere || q.Outcome == observe.NotDeclared || q.Outcome == observe.NotExpressible {
		return // the client was never asked
	}
	m.questionTime[q.Kind].Observe(q.Took.Seconds())
	failed := ""
	if q.Outcome >= observe.ClientError {
		failed = q.Outcome.String()
	}
	m.requests.of(requestKey{method: q.Kind.Method(), version: versionWord(q.Version), fault: failed, result: "complete", question: true, transport: q.Transport, http: q.HTTP}).Observe(q.Took.Seconds())
}

// SessionEnded implements observe.Watcher.
func (m *Mount) SessionEnded(s observe.Session) {
	m.sessions.of(sessionKey{versionWord(s.Version), faultOf(&s), s.Transport, s.Reason}).Observe(s.Took.Seconds())
	m.reasons[s.Reason].Inc()
}

// faultOf is the conventions' error.type for a session: "" for one without an error.
func faultOf(s *observe.Session) string {
	switch {
	case s.Reason == observe.Displaced:
		return s.Reason.String()
	case s.Broken && s.Reason == observe.Disconnected:
		return "connection"
	}
	return ""
}

// Refused implements observe.Watcher.
func (m *Mount) Refused(why observe.Refusal) { m.refusals[why].Inc() }

// Resumed implements observe.Watcher.
func (m *Mount) Resumed(r observe.Resumption) { m.resumptions[r].Inc() }

// Distrusted implements observe.Watcher.
func (m *Mount) Distrusted(k observe.Kind) {
	if k < observe.Kinds {
		m.breaker[k].Inc()
	}
}

// RequestEnded implements observe.Watcher.
func (m *Mount) RequestEnded(r observe.Request) {
	method := methodWord(r.Method)
	k := requestKey{method: method, version: versionWord(r.Version), operation: operation(method), result: r.Result.String(), http: r.HTTP}
	if m.tools != nil {
		m.tools.learn(&r)
		k.tool = m.tools.of(&r)
	}
	switch {
	case r.Cause != "":
		k.fault = r.Cause
		m.causes.of(r.Cause).Inc()
	case r.Code != 0:
		k.fault, k.code = codeWord(r.Code), codeWord(r.Code)
	}
	m.requests.of(k).Observe(r.Took.Seconds())
}

// SessionOpened implements observe.Watcher.
func (m *Mount) SessionOpened(client string, version mcp.Version) {
	m.clients.seen(client, versionWord(version), "legacy", time.Now())
}

// Modern implements observe.Watcher.
func (m *Mount) Modern(client, version string) {
	m.clients.seen(client, versionWord(mcp.Version(version)), "modern", time.Now())
}

// Repeated implements observe.Watcher.
func (m *Mount) Repeated(why observe.Repeat) { m.repeats[why].Inc() }

// Lost implements observe.Watcher.
func (m *Mount) Lost(_ mcp.Version, what string) { m.losses.of(lossWord(what)).Inc() }

// Cached implements observe.Watcher.
func (m *Mount) Cached(hit bool) {
	if hit {
		m.hits.Inc()
	} else {
		m.misses.Inc()
	}
}

// Authorized implements observe.Watcher.
func (m *Mount) Authorized(step, outcome string) {
	m.oauth.of(oauthKey{expected(oauthStepWords, step), expected(oauthOutcomes, outcome)}).Inc()
}

// Overhead implements observe.Watcher.
func (m *Mount) Overhead(phase observe.Phase, took time.Duration) {
	m.phases[phase].Observe(took.Seconds())
}

// Passed implements observe.Watcher.
func (m *Mount) Passed(modern bool) {
	if modern {
		m.modern.Inc()
	} else {
		m.relayed.Inc()
	}
}
