package stdio

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/dialect"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

// onlyDraft admits DRAFT-2026-v1, whose code for versions was another one.
type onlyDraft struct{}

func (onlyDraft) Error(_ int, e *jsonrpc.Error) *jsonrpc.Error {
	if e.Code != -32004 {
		return e
	}
	return &jsonrpc.Error{Code: mcp.CodeUnsupportedVersion, Message: e.Message, Data: e.Data}
}

func (onlyDraft) Offered([]byte) {}

func (onlyDraft) Version(offered []byte) string {
	if strings.Contains(string(offered), "DRAFT-2026-v1") {
		return "DRAFT-2026-v1"
	}
	return ""
}

func TestI8DraftsOverStdio(t *testing.T) {
	for _, drafts := range []upstream.Fallback{nil, onlyDraft{}} {
		s := newStdio(t, "draft", Options{Fallback: drafts})
		ans, err := s.Do(t.Context(), call(mcp.MethodDiscover, ""), nil)
		if err != nil {
			t.Fatal(err)
		}
		if admitted := drafts != nil; (ans.Error == nil) != admitted {
			t.Errorf("admitted %v: %+v", admitted, ans)
		}
	}
}

// The next process may be of another version than the one of which a session knows. What it refuses for that is not sent
// again, so it is declared right at once.
func TestTheNextProcessIsToldAVersionThatItSpeaks_A15(t *testing.T) {
	s := newStdio(t, "drafts", Options{Fallback: onlyDraft{}, Dir: t.TempDir(), MinBackoff: time.Millisecond})
	mustDo(t, s, call(mcp.MethodDiscover, ""))
	of := func(name string) *upstream.Call {
		c := tool(name)
		c.Params = upstream.Redeclare(c.Params, "DRAFT-2026-v1")
		return c
	}
	_, _ = s.Do(t.Context(), of("exit"), nil)
	if ans := mustDo(t, s, of("pid")); ans.Error != nil {
		t.Errorf("%+v", ans.Error)
	}
}

// A process says of no error whether the tool has run: what is not read-only runs once.
func TestAToolThatAnswersWithARefusalOfTheVersionRunsOnce(t *testing.T) {
	s := newStdio(t, "script", Options{Fallback: onlyDraft{}})
	for _, want := range []string{"run 1", "run 2"} {
		ans := mustDo(t, s, tool("runs, and hands on a refusal of another's"))
		if ans.Error == nil || ans.Error.Message != want {
			t.Errorf("want %s: %+v", want, ans.Error)
		}
	}
}

// The next process speaks a draft, and asks in its way.
func TestADraftOfTheNextProcessIsReadAsOne_I3(t *testing.T) {
	d := dialect.New(dialect.Options{})
	s := newStdio(t, "todraft", Options{Fallback: d, Dir: t.TempDir(), MinBackoff: time.Millisecond})
	c := d.Caller(s)
	mustDo(t, c, call(mcp.MethodDiscover, ""))
	_, _ = c.Do(t.Context(), tool("exit"), nil)
	ans := mustDo(t, c, tool("ask"))
	if !d.Active() {
		t.Errorf("a draft's answer is taken for a final one: %s", ans.Result)
	}
}
