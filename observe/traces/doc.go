// Package traces makes spans of calls, of their rounds to the server, and of questions
// to clients, and sends them to a collector. It alone knows OpenTelemetry.
//
// Whether a call is sampled is decided before anything is allocated. Of a sampled call
// names and times are kept while it is under way, and every span is made when it ends:
// a call that waits for a person holds nothing open.
package traces
