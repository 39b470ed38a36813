package translate

import (
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// questions is what each kind of question has of its own between the eras.
var questions = [mcp.InputKinds]struct {
	// request makes the params that the client gets; the error is an *Unexpressible.
	request func(r Rules, params, caps []byte) ([]byte, error)
	// answer makes the input response of the client's result; the error is a *BadAnswer.
	answer func(r Rules, params, result []byte) ([]byte, error)
	// declare brings the client's capability up; nil: its revision has none.
	declare func(v mcp.Version, declared []byte) []byte
	// need says in words what a server wants that requires the capability.
	need func(r Rules, required []byte) string
	// setting is which one of the bridge's does without the client; "": nobody can stand
	// in for it.
	setting string
}{
	mcp.Elicitation: {
		request: func(r Rules, params, _ []byte) ([]byte, error) { return r.elicitation(params) },
		answer:  Rules.elicitationAnswer,
		declare: elicitationCapability,
		need:    Rules.elicitationNeed,
		setting: "questions: page (a person is asked on a page)",
	},
	mcp.Sampling: {
		request: Rules.sampling,
		answer:  func(_ Rules, _, result []byte) ([]byte, error) { return samplingAnswer(result) },
		declare: samplingCapability,
		need:    Rules.samplingNeed,
		setting: "sampling.provider (a model answers)",
	},
	mcp.Roots: {
		request: func(Rules, []byte, []byte) ([]byte, error) { return nil, nil }, // C.8: no params needed in any revision
		answer:  func(_ Rules, _, result []byte) ([]byte, error) { return rootsAnswer(result) },
		declare: func(mcp.Version, []byte) []byte { return []byte("{}") }, // listChanged no longer exists
		need: func(Rules, []byte) string {
			return "roots: telling the server which folders it may use"
		},
		setting: "roots (folders of the configuration)",
	},
}

// Setting names the setting of the bridge which does without the client for a kind of
// question, and what it does; "" where there is none.
func Setting(kind mcp.InputKind) string {
	if kind >= mcp.InputKinds {
		return ""
	}
	return questions[kind].setting
}

// elicitationCapability: before 2025-11-25 {} means forms only.
func elicitationCapability(v mcp.Version, declared []byte) []byte {
	switch {
	case !v.AtLeast(mcp.V20250618): // not in the revision
		return nil
	case v.AtLeast(mcp.V20251125):
		return declared
	}
	return []byte("{}")
}

func (r Rules) elicitationNeed(required []byte) string {
	if rawjson.Has(required, "url") {
		return r.since("sending the user to a web page (capability elicitation.url)", mcp.V20251125)
	}
	return r.since("asking the user questions (capability elicitation)", mcp.V20250618)
}

func (r Rules) samplingNeed(required []byte) string {
	if rawjson.Has(required, "tools") {
		return r.since("sampling with tools (capability sampling.tools)", mcp.V20251125)
	}
	return "sampling: letting the server use the client's model"
}
