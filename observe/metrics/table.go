package metrics

// kind is the kind of a metric, in Prometheus' words.
type kind string

const (
	counter   kind = "counter"
	gauge     kind = "gauge"
	histogram kind = "histogram"
)

// metric is one metric as it is registered, and documented.
type metric struct {
	name    string // in Prometheus' spelling
	otel    string // by the conventions of OpenTelemetry; "" for the bridge's own
	kind    kind
	labels  []string
	buckets []float64 // of histograms, in their unit
	help    string    // one sentence
}

// Buckets of histograms. The first are those of the conventions for MCP.
var (
	conventional = []float64{.01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 120, 300}
	patient      = append(conventional[:len(conventional):len(conventional)], 600, 1800)
	sessionLong  = append(conventional[:len(conventional):len(conventional)], 600, 1200, 1800, 3600, 14400, 86400)
	fast         = []float64{1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, .01, .05, .25}
	human        = []float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600}
	fewRounds    = []float64{1, 2, 3, 4, 6, 8, 12, 16, 20}
)

// The conventions for MCP of OpenTelemetry, in Prometheus' spelling. They are in
// development, so the names stand here and a test compares them with a copy.
var (
	serverOperation = metric{
		name: "mcp_server_operation_duration_seconds", otel: "mcp.server.operation.duration", kind: histogram, buckets: patient,
		labels: []string{"mount", "mcp_method_name", "mcp_protocol_version", "gen_ai_operation_name", "error_type", "rpc_response_status_code",
			"network_transport", "network_protocol_name", "network_protocol_version", "gen_ai_tool_name", "mcpbridge_transport"},
		help: "Requests of clients, from their arrival to their answer, the time that people needed included. Tools are told apart with metrics.tools.",
	}
	clientOperation = metric{
		name: "mcp_client_operation_duration_seconds", otel: "mcp.client.operation.duration", kind: histogram, buckets: conventional,
		labels: []string{"mount", "mcp_method_name", "mcp_protocol_version", "gen_ai_operation_name", "error_type", "rpc_response_status_code",
			"network_transport", "network_protocol_name", "network_protocol_version", "gen_ai_tool_name", "server_address", "server_port", "mcpbridge_result"},
		help: "Requests of the bridge: one for each round to the server, and one for each question to a client. The server's address stands at rounds.",
	}
	serverSession = metric{
		name: "mcp_server_session_duration_seconds", otel: "mcp.server.session.duration", kind: histogram, buckets: sessionLong,
		labels: []string{"mount", "mcp_protocol_version", "network_transport", "network_protocol_name", "error_type", "mcpbridge_session_end"},
		help:   "Sessions of clients, from initialize to their end. An error is a connection that broke, and a limit that ended the session.",
	}
)

// The bridge's own: what has ended.
var (
	rounds = metric{
		name: "mcpbridge_rounds", kind: histogram, buckets: fewRounds, labels: []string{"mount", "method"},
		help: "How many requests to the server one call took.",
	}
	flowsEnded = metric{
		name: "mcpbridge_flows_ended_total", kind: counter, labels: []string{"mount", "end", "cause"},
		help: "Requests of clients that the bridge translates or answers, initialize included, by their end; each has exactly one, and a call that is made again while it waits counts once. The cause is empty for those that completed.",
	}
	questionTime = metric{
		name: "mcpbridge_question_duration_seconds", kind: histogram, buckets: human, labels: []string{"mount", "kind"},
		help: "How long clients took for questions of the server.",
	}
	questions = metric{
		name: "mcpbridge_questions_total", kind: counter, labels: []string{"mount", "kind", "outcome"},
		help: "Questions of the server to clients, by what became of them; those count, too, that a page, a model or the configuration answers in the place of a client.",
	}
	sessionsEnded = metric{
		name: "mcpbridge_sessions_ended_total", kind: counter, labels: []string{"mount", "reason"},
		help: "Sessions by why they ended.",
	}
	refused = metric{
		name: "mcpbridge_refused_total", kind: counter, labels: []string{"mount", "status", "reason"},
		help: "HTTP requests of clients that were turned away before they meant anything.",
	}
	resumptions = metric{
		name: "mcpbridge_resumptions_total", kind: counter, labels: []string{"mount", "outcome"},
		help: "Clients that came back for the rest of a stream, by what they got.",
	}
	upstreamFailures = metric{
		name: "mcpbridge_upstream_failures_total", kind: counter, labels: []string{"mount", "cause"},
		help: "Requests to the server that got no answer, by the cause that the log names too.",
	}
	breaker = metric{
		name: "mcpbridge_breaker_total", kind: counter, labels: []string{"mount", "kind"},
		help: "How often a client was no longer asked for something that it had declared, because it did not serve it.",
	}
	clients = metric{
		name: "mcpbridge_clients_total", kind: counter, labels: []string{"mount", "client", "version", "era"},
		help: "Sessions by the name that the client declared, at most 50 names and then _OTHER, and the revision that it speaks; of modern clients, which have no sessions, requests by the product of their User-Agent.",
	}
	clientSeen = metric{
		name: "mcpbridge_client_last_seen_timestamp_seconds", kind: gauge, labels: clients.labels,
		help: "When such a client last opened a session, or sent a modern request.",
	}
	passed = metric{
		name: "mcpbridge_passthrough_total", kind: counter, labels: []string{"mount", "era"},
		help: "Requests that went to the server as they were: of modern clients, and of legacy ones that are relayed to a server of their own era.",
	}
)

// The bridge's own: signing in to servers.
var (
	oauthSteps = metric{
		name: "mcpbridge_oauth_total", kind: counter, labels: []string{"mount", "step", "outcome"},
		help: "What the bridge did to get tokens for a server, by what came of it; sign_in is the whole, the person included.",
	}
	tokenExpiry = metric{
		name: "mcpbridge_oauth_token_expiry_timestamp_seconds", kind: gauge, labels: []string{"mount"},
		help: "When the token ends with which the bridge itself is signed in to a server; absent without one, or where nobody said.",
	}
)

// The bridge's own: what it does to messages, and what that takes.
var (
	overhead = metric{
		name: "mcpbridge_overhead_seconds", kind: histogram, buckets: fast, labels: []string{"mount", "phase"},
		help: "What the bridge itself takes: from a request's arrival to its first round, and from the server's last word to the client's. One call in 16 is measured.",
	}
	repeats = metric{
		name: "mcpbridge_upstream_repeats_total", kind: counter, labels: []string{"mount", "reason"},
		help: "Requests that were sent to the server again, by why.",
	}
	downlevel = metric{
		name: "mcpbridge_downlevel_total", kind: counter, labels: []string{"mount", "what"},
		help: "What clients got in the words of their older revision, or not at all. Of lists each is counted when it is new to a revision.",
	}
	cacheRequests = metric{
		name: "mcpbridge_cache_requests_total", kind: counter, labels: []string{"mount", "result"},
		help: "Requests whose results may be kept, by whether one was there.",
	}
)

// The bridge's own: the way to the server.
var (
	listens = metric{
		name: "mcpbridge_listens_upstream", kind: gauge, labels: []string{"mount", "state"},
		help: "Subscriptions at the server that sessions share: open, or about to be opened again.",
	}
	connections = metric{
		name: "mcpbridge_upstream_connections", kind: gauge, labels: []string{"mount", "state"},
		help: "Connections to the server that are open.",
	}
	processes = metric{
		name: "mcpbridge_children", kind: gauge, labels: []string{"mount", "state"},
		help: "Processes of a command: the one that all share, and those that serve one session each.",
	}
	childrenLimit = metric{
		name: "mcpbridge_children_limit", kind: gauge, labels: []string{"mount"},
		help: "How many of the latter there may be: limits.children.",
	}
	upstreamInfo = metric{
		name: "mcpbridge_upstream_info", kind: gauge, labels: []string{"mount", "era", "versions", "server", "server_version", "draft"},
		help: "Always 1; the labels tell what the server says of itself. Of names, releases and drafts the first 8 of a mount are told, shortened, and of versions those of the protocol; others are _OTHER.",
	}
)

// The bridge's own: what is under way, and what limits it.
var (
	sessionsOpen = metric{
		name: "mcpbridge_sessions", kind: gauge, labels: []string{"mount", "version", "transport"},
		help: "Open sessions by revision and transport.",
	}
	streams = metric{
		name: "mcpbridge_streams", kind: gauge, labels: []string{"mount", "kind", "state"},
		help: "Streams of events: of calls, or of GET; attached while a client reads them, detached while what comes is kept for it, ended while the last events are. A session over HTTP+SSE or a WebSocket is one stream, sse or websocket.",
	}
	reloads = metric{
		name: "mcpbridge_reloads_total", kind: counter, labels: []string{"result"},
		help: "How often the configuration was read again, by whether it took effect.",
	}
	reloaded = metric{
		name: "mcpbridge_config_reload_success_timestamp_seconds", kind: gauge, labels: nil,
		help: "When the configuration that is obeyed was read.",
	}
	sessionLimit = metric{
		name: "mcpbridge_session_limit", kind: gauge, labels: []string{"mount"},
		help: "How many sessions there may be: limits.sessions.",
	}
	flowLimit = metric{
		name: "mcpbridge_flow_limit", kind: gauge, labels: []string{"mount"},
		help: "How many calls of one session may wait: limits.flows.",
	}
	callsInFlight = metric{
		name: "mcpbridge_calls_in_flight", kind: gauge, labels: []string{"mount"},
		help: "Calls that wait for the server.",
	}
	flowsSuspended = metric{
		name: "mcpbridge_flows_suspended", kind: gauge, labels: []string{"mount", "waiting_for"},
		help: "Calls that wait for somebody else than the server; for the client, too, those that it is to make again to get what came of their question.",
	}
	oldestFlow = metric{
		name: "mcpbridge_flow_oldest_seconds", kind: gauge, labels: []string{"mount"},
		help: "For how long the oldest of them has waited.",
	}
	upstreamReady = metric{
		name: "mcpbridge_upstream_ready", kind: gauge, labels: []string{"mount"},
		help: "1 when the server is one that the bridge can use, as /readyz says.",
	}
	storeUp = metric{
		name: "mcpbridge_store_up", kind: gauge,
		help: "1 while the store of sessions can be reached. Without a store in Redis there is no such metric.",
	}
	memoryUsed = metric{
		name: "mcpbridge_memory_bytes", kind: gauge,
		help: "What peers make the process hold, as it is charged to them, and what else the collector found alive.",
	}
	memoryLimit = metric{
		name: "mcpbridge_memory_limit_bytes", kind: gauge,
		help: "How much that may be: half of limits.memory. At seven eighths of it newcomers are refused.",
	}
	memoryRefused = metric{
		name: "mcpbridge_memory_refused_total", kind: counter,
		help: "How often something was refused because of it.",
	}
	traceSpans = metric{
		name: "mcpbridge_trace_spans_total", kind: counter, labels: []string{"outcome"},
		help: "Spans for the collector: sent, failed because it did not take them, or dropped because too many waited. Only where calls are traced.",
	}
	buildInfo = metric{
		name: "mcpbridge_build_info", kind: gauge, labels: []string{"version", "revision", "goversion"},
		help: "Always 1; the labels tell what runs.",
	}
)

// table has every metric, in the order of the documentation.
var table = []metric{
	serverOperation, clientOperation, serverSession,
	streams, traceSpans, reloads, reloaded,
	flowsEnded, rounds, questions, questionTime, sessionsEnded, refused, resumptions, upstreamFailures, breaker, clients, clientSeen, passed,
	oauthSteps, tokenExpiry,
	overhead, repeats, downlevel, cacheRequests, listens, connections, processes, childrenLimit, upstreamInfo,
	sessionsOpen, sessionLimit, callsInFlight, flowsSuspended, oldestFlow, flowLimit, upstreamReady, storeUp, memoryUsed, memoryLimit, memoryRefused, buildInfo,
}
