// Package check looks at a server once and says what the bridge makes of it, and
// what each kind of client will get.
package check

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/clip"
	"github.com/mcpbridge/bridge/internal/dialect"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
	"github.com/mcpbridge/bridge/upstream/stdio"
	"github.com/mcpbridge/bridge/upstream/streamable"
)

// Options say which server to look at: one over HTTP, or a command.
type Options struct {
	Name    string // of the server, for the report
	HTTP    streamable.Options
	Command *stdio.Options // instead of HTTP
	Login   string         // how long the kept login of the server lasts; empty: there is none
	Public  string         // the address under which clients know the bridge; empty: that is not known
	Draft   dialect.Options
	First   time.Duration // how long it may take for its first answer, in addition
	Setting string        // which says so
	Relay   negotiate.RelayPolicy
	Profile translate.Profile
	Instead string // who answers for clients that cannot be asked; empty: nobody
}

// checkTimeout bounds a whole check, in addition to the server's first answer.
const checkTimeout = 30 * time.Second

// Examine looks at a server. An error means that it could not even be asked.
func Examine(ctx context.Context, opt Options) (*Report, error) {
	wanted := ctx
	ctx, cancel := context.WithTimeout(ctx, checkTimeout+opt.First)
	defer cancel()
	r := &Report{URL: opt.Name, Authorization: "not asked for", Instead: opt.Instead}
	heard := &hearing{Report: r}
	log := zerolog.New(zerolog.SyncWriter(heard))
	opt.Draft.Log = log
	draft := dialect.New(opt.Draft)
	direct, err := opt.caller(draft, log)
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = direct.Close() // then its process, if it is one, has said its last words
		heard.tell()
	}()
	caller := draft.Caller(direct)
	probe := negotiate.Options{Fallback: draft.Version, Timeout: opt.First, Setting: opt.Setting}
	began := time.Now()
	own := upstream.NewPeer(caller, upstream.Call{Params: translate.OwnParams(mcp.MethodDiscover, nil)})
	verdict := negotiate.NewProber(probe).Probe(ctx, "", own)
	r.Milliseconds = time.Since(began).Milliseconds()
	r.judge(&verdict)
	if verdict.Usable() {
		r.identify(translate.ServerInfo(verdict.Discover), rawjson.Get(verdict.Discover, "capabilities"))
		r.list(ctx, caller, opt.Profile)
	}
	if verdict.LegacyServer() {
		r.ask(ctx, &opt, &verdict, zerolog.Nop())
	}
	if wanted.Err() != nil {
		return nil, ErrStopped
	}
	r.relay(&opt, &verdict)
	if failure := upstream.Refused(&verdict); failure != nil {
		r.authorize(ctx, &opt.HTTP, opt.Login, opt.Public, failure)
	}
	return r, nil
}

// caller makes a client of the server.
func (o *Options) caller(draft *dialect.Dialect, log zerolog.Logger) (upstream.Caller, error) {
	if o.Command != nil {
		command := *o.Command
		command.Fallback, command.Log = draft, log
		return stdio.New(command)
	}
	server := o.HTTP
	server.Fallback, server.Log = draft, log
	return streamable.New(server)
}

// judge copies the verdict.
func (r *Report) judge(v *negotiate.Verdict) {
	r.Era, r.Versions, r.Usable = v.Proven().String(), v.Versions, v.Usable()
	if v.Err != nil {
		r.Problem, r.Authorization = upstream.Advice(v), "not known"
	}
}

// relay says which clients are the server's own, and what else the
// operator could have.
func (r *Report) relay(opt *Options, v *negotiate.Verdict) {
	policy := opt.Relay
	switch {
	case v.LegacyServer() && policy != negotiate.RelayNever:
		r.Usable, r.Problem, r.Authorization = true, "", "not asked for"
		r.Note = "a legacy server: it needs no bridge, which relays clients to it unchanged"
		switch {
		case opt.Command != nil:
			r.Note += ", each to a process of its own"
		case v.HTTPSSE:
			r.Note = "a legacy server that speaks only HTTP+SSE, the transport of 2024-11-05; clients of every transport are relayed to it unchanged"
		}
		for _, version := range mcp.Legacy {
			r.Clients = append(r.Clients, ClientView{Version: string(version)})
		}
	case v.Usable() && v.Era == negotiate.Dual && policy == negotiate.RelayAuto:
		r.Note = "speaks older revisions too; their clients are translated for, with legacy-relay: always relayed unchanged"
	}
	for i := range r.Clients {
		c := &r.Clients[i]
		if v.Relays(policy, []byte(`{"protocolVersion":"`+c.Version+`","capabilities":{}}`)) {
			*c = ClientView{Version: c.Version, Relayed: true}
		}
	}
}

// identify copies what a server says of itself.
func (r *Report) identify(info, capabilities []byte) {
	name, _ := rawjson.Text(rawjson.Get(info, "name"))
	version, _ := rawjson.Text(rawjson.Get(info, "version"))
	r.Server = printable(strings.TrimSpace(name + " " + version))
	for name := range rawjson.Members(capabilities) {
		r.Capabilities = append(r.Capabilities, printable(string(name)))
	}
}

// list reads the tools and translates each page for every kind of client.
func (r *Report) list(ctx context.Context, caller upstream.Caller, p translate.Profile) {
	for _, v := range mcp.Legacy {
		r.Clients = append(r.Clients, ClientView{Version: string(v), Questions: questions(v)})
	}
	defer r.summarize()
	own := rawjson.Get(translate.OwnParams(mcp.MethodToolsList, []byte("{}")), "_meta")
	err := upstream.EachPage(own, func(params []byte) (*upstream.Answer, error) {
		return caller.Do(ctx, &upstream.Call{Method: mcp.MethodToolsList, Params: params}, nil)
	}, func(page *upstream.Answer) error {
		return r.page(page.Result, p)
	})
	r.note(err)
}

// note keeps why the tools could not be listed; a server without tools is none
// the worse for it.
func (r *Report) note(err error) {
	refusal, refused := err.(*jsonrpc.Error) // a failure of the connection may wrap one
	switch {
	case err == nil, refused && refusal.Code == jsonrpc.CodeMethodNotFound:
	case refused:
		r.Problem = "the tools cannot be listed: the server answers " + printable(refusal.Message)
	default:
		r.Problem = "the tools cannot be listed: " + err.Error()
	}
}

func (r *Report) page(result []byte, p translate.Profile) error {
	for range rawjson.Elements(rawjson.Get(result, "tools")) {
		r.Tools++
	}
	for i, v := range mcp.Legacy {
		view := &r.Clients[i]
		rules := translate.Rules{Version: v, Profile: p, Report: func(o translate.Omission) {
			view.Omitted = append(view.Omitted, ToolProblem{printable(o.Name), o.Reason})
		}}
		out, err := rules.Result(mcp.MethodToolsList, result)
		if err != nil {
			return err
		}
		for range rawjson.Elements(rawjson.Get(out, "tools")) {
			view.Tools++
		}
	}
	return nil
}

// summarize moves what every client lacks to one place.
func (r *Report) summarize() {
	for _, problem := range slices.Clone(r.Clients[0].Omitted) {
		everywhere := !slices.ContainsFunc(r.Clients, func(c ClientView) bool { return !slices.Contains(c.Omitted, problem) })
		if !everywhere {
			continue
		}
		r.ToolProblems = append(r.ToolProblems, problem)
		for i := range r.Clients {
			r.Clients[i].Omitted = slices.DeleteFunc(r.Clients[i].Omitted, func(p ToolProblem) bool { return p == problem })
		}
	}
}

// maxPrinted bounds text of the server in a report, in bytes.
const maxPrinted = 80

// printable makes text of the server safe for a terminal.
func printable(text string) string { return clip.Text(clip.Printable(text), maxPrinted) }
