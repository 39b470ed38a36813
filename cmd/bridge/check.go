package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/negotiate"
	"github.com/mcpbridge/bridge/rawjson"
	"github.com/mcpbridge/bridge/translate"
	"github.com/mcpbridge/bridge/upstream"
)

func newCheck(env surroundings) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check (URL | -- COMMAND [ARGUMENT…])",
		Short: "Look at a server and say what each kind of client will get from it",
		Long: `check asks a server what it is and which tools it has, and prints what the bridge
makes of it. The exit status is 0 when the bridge can use it.`,
		Example: "  bridge check https://mcp.example.com/mcp\n  bridge check --headers 'Authorization: Bearer …' --json https://mcp.example.com/mcp",
		Args:    urlOrCommand,
	}
	settings := addSettings(cmd, env.environ, func(key string) bool {
		return concernsCheck(key) || strings.HasPrefix(key, "upstream-tls.")
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print the report as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cfg, err := settings.load(commandOf(cmd, settings, args))
		if err != nil {
			return asArgument(err)
		}
		r, err := examine(cmd.Context(), &cfg.Mount)
		if err != nil {
			return err
		}
		return r.print(cmd.OutOrStdout(), asJSON)
	}
	return cmd
}

// commandOf returns the command after "--", or notes the URL.
func commandOf(cmd *cobra.Command, settings *settingFlags, args []string) []string {
	if cmd.ArgsLenAtDash() == 0 {
		return args
	}
	settings.settings = append(settings.settings, config.Setting{Key: "upstream", Values: args})
	return nil
}

// asArgument names the URL in an error as the argument that it is to check.
func asArgument(err error) error {
	if bad, ok := errors.AsType[*config.Error](err); ok {
		for i := range bad.Problems {
			if p := &bad.Problems[i]; p.Where == "--upstream" {
				p.Where, p.Key = "URL", ""
			}
		}
	}
	return err
}

// concernsCheck names the settings that decide how a server is reached, and what
// its clients get.
func concernsCheck(key string) bool {
	switch key {
	case "headers", "upstream-socket", "profile", "draft", "legacy-relay", "timeouts.connect", "timeouts.start":
		return true
	}
	return false
}

// report is what check found out.
type report struct {
	URL           string        `json:"url"` // of a command its name
	Usable        bool          `json:"usable"`
	Problem       string        `json:"problem,omitempty"`
	Note          string        `json:"note,omitempty"`
	Milliseconds  int64         `json:"milliseconds"` // until it was known what the server is
	Era           string        `json:"era"`
	Versions      []string      `json:"versions,omitempty"`
	Server        string        `json:"server,omitempty"`
	Capabilities  []string      `json:"capabilities,omitempty"`
	Authorization string        `json:"authorization"`
	Resource      string        `json:"resource,omitempty"` // for which the server accepts tokens
	Tools         int           `json:"tools"`
	ToolProblems  []toolProblem `json:"toolProblems,omitempty"`
	Clients       []clientView  `json:"clients,omitempty"`
}

// toolProblem says why clients will not see a tool.
type toolProblem struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
}

// clientView is what clients of one revision get.
type clientView struct {
	Version   string        `json:"version"`
	Relayed   bool          `json:"relayed,omitempty"` // to the server, unchanged; what follows then is the server's business
	Tools     int           `json:"tools,omitempty"`
	Omitted   []toolProblem `json:"omitted,omitempty"` // besides those of all clients
	Questions string        `json:"questions,omitempty"`
}

// checkTimeout bounds a whole check, in addition to the start of a command.
const checkTimeout = 30 * time.Second

func examine(ctx context.Context, m *config.Mount) (*report, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout+m.Timeouts.Start)
	defer cancel()
	r := &report{URL: target(m), Authorization: "not asked for"}
	heard := &hearing{report: r}
	log := zerolog.New(zerolog.SyncWriter(heard))
	draft := newDialect(m, log)
	direct, err := newCaller(m, draft, log)
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = direct.Close() // then its process, if it is one, has said its last words
		heard.tell()
	}()
	caller := draft.Caller(direct)
	probe := negotiate.Options{Draft: draft.Version}
	if len(m.Command) > 0 {
		probe.Timeout = m.Timeouts.Start
	}
	began := time.Now()
	verdict := negotiate.NewProber(probe).Probe(ctx, "", ownPeer(caller))
	r.Milliseconds = time.Since(began).Milliseconds()
	r.judge(&verdict)
	if verdict.Usable() {
		r.describe(verdict.Discover)
		r.list(ctx, caller, profile(m.Profile))
	}
	r.relay(m, &verdict)
	if failure := refusal(&verdict); failure != nil {
		r.authorize(ctx, m, failure)
	}
	return r, nil
}

// judge copies the verdict.
func (r *report) judge(v *negotiate.Verdict) {
	r.Era, r.Versions, r.Usable = eraOf(v).String(), v.Versions, v.Usable()
	if v.Err != nil {
		r.Problem, r.Authorization = advice(*v), "not known"
	}
}

// eraOf is the era that a server has shown to be of. One that named no version
// is only not modern.
func eraOf(v *negotiate.Verdict) negotiate.Era {
	if v.Era == negotiate.Legacy && len(v.Versions) == 0 {
		return negotiate.Unknown
	}
	return v.Era
}

// relay says which clients are the server's own, and what else the
// operator could have.
func (r *report) relay(m *config.Mount, v *negotiate.Verdict) {
	policy := relayPolicy(m)
	switch {
	case v.LegacyServer() && policy != negotiate.RelayNever:
		r.Usable, r.Problem, r.Authorization = true, "", "not asked for"
		r.Note = "a legacy server: it needs no bridge, which relays clients to it unchanged"
		if len(m.Command) > 0 {
			r.Note += ", each to a process of its own"
		}
		for _, version := range mcp.Legacy {
			r.Clients = append(r.Clients, clientView{Version: string(version)})
		}
	case v.Usable() && v.Era == negotiate.Dual && policy == negotiate.RelayAuto:
		r.Note = "speaks older revisions too; their clients are translated for, with legacy-relay: always relayed unchanged"
	}
	for i := range r.Clients {
		c := &r.Clients[i]
		if v.Relays(policy, []byte(`{"protocolVersion":"`+c.Version+`","capabilities":{}}`)) {
			*c = clientView{Version: c.Version, Relayed: true}
		}
	}
}

func (r *report) describe(discover []byte) {
	info := translate.ServerInfo(discover)
	name, _ := rawjson.Text(rawjson.Get(info, "name"))
	version, _ := rawjson.Text(rawjson.Get(info, "version"))
	r.Server = printable(strings.TrimSpace(name + " " + version))
	for name := range rawjson.Members(rawjson.Get(discover, "capabilities")) {
		r.Capabilities = append(r.Capabilities, printable(string(name)))
	}
}

// maxPages bounds the pages of tools that check reads.
const maxPages = 100

// list reads the tools and translates each page for every kind of client.
func (r *report) list(ctx context.Context, caller upstream.Caller, p translate.Profile) {
	for _, v := range mcp.Legacy {
		r.Clients = append(r.Clients, clientView{Version: string(v), Questions: questions(v)})
	}
	defer r.summarize()
	var cursor []byte
	for range maxPages {
		answer, err := caller.Do(ctx, &upstream.Call{Method: mcp.MethodToolsList, Params: pageParams(cursor)}, nil)
		if err != nil || answer.Error != nil {
			r.note(answer, err)
			return
		}
		if r.page(answer.Result, p); r.Problem != "" {
			return
		}
		if cursor = rawjson.Get(answer.Result, "nextCursor"); rawjson.KindOf(cursor) != rawjson.String {
			return
		}
	}
}

// note keeps why the tools could not be listed; a server without tools is none
// the worse for it.
func (r *report) note(answer *upstream.Answer, err error) {
	switch {
	case err != nil:
		r.Problem = "the tools cannot be listed: " + err.Error()
	case answer.Error.Code != jsonrpc.CodeMethodNotFound:
		r.Problem = "the tools cannot be listed: the server answers " + printable(answer.Error.Message)
	}
}

func (r *report) page(result []byte, p translate.Profile) {
	for range rawjson.Elements(rawjson.Get(result, "tools")) {
		r.Tools++
	}
	for i, v := range mcp.Legacy {
		view := &r.Clients[i]
		rules := translate.Rules{Version: v, Profile: p, Report: func(o translate.Omission) {
			view.Omitted = append(view.Omitted, toolProblem{printable(o.Name), o.Reason})
		}}
		out, err := rules.Result(mcp.MethodToolsList, result)
		if err != nil {
			r.Problem = err.Error()
			return
		}
		for range rawjson.Elements(rawjson.Get(out, "tools")) {
			view.Tools++
		}
	}
}

// summarize moves what every client lacks to one place.
func (r *report) summarize() {
	for _, problem := range slices.Clone(r.Clients[0].Omitted) {
		everywhere := !slices.ContainsFunc(r.Clients, func(c clientView) bool { return !slices.Contains(c.Omitted, problem) })
		if !everywhere {
			continue
		}
		r.ToolProblems = append(r.ToolProblems, problem)
		for i := range r.Clients {
			r.Clients[i].Omitted = slices.DeleteFunc(r.Clients[i].Omitted, func(p toolProblem) bool { return p == problem })
		}
	}
}

func pageParams(cursor []byte) []byte {
	params := []byte(`{}`)
	if cursor != nil {
		params = rawjson.Apply(nil, params, rawjson.Edit{Name: "cursor", Value: cursor})
	}
	return translate.OwnParams(mcp.MethodToolsList, params)
}

// maxPrinted bounds text of the server in a report, in bytes.
const maxPrinted = 80

// printable makes text of the server safe for a terminal.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, text)
	if len(text) > maxPrinted {
		text = strings.ToValidUTF8(text[:maxPrinted], "") + "…"
	}
	return text
}
