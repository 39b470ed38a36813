package dialect_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/dialect"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// unless serves requests of one version and refuses all others with code.
func unless(version string, code int, serve reply) reply {
	return func(w http.ResponseWriter, r *http.Request, s *seen) {
		if r.Header.Get(mcp.HeaderProtocolVersion) == version {
			serve(w, r, s)
			return
		}
		refuse(400, code, "unsupported protocol version",
			`{"supported":["`+version+`"],"requested":`+s.member("_meta", mcp.MetaProtocolVersion)+`}`)(w, r, s)
	}
}

// TestI8TheDraftIsSpokenInItsOwnSpelling: the first probe is of the final
// version; what the server names instead stands in header and _meta from then
// on, whichever code it was named with (I-7).
func TestI8TheDraftIsSpokenInItsOwnSpelling(t *testing.T) {
	for _, version := range []string{"DRAFT-2026-v1", "2026-06-30"} {
		for _, code := range []int{-32022, -32004, -32602} {
			srv := newServer(t, script{
				mcp.MethodDiscover:  {unless(version, code, discovered(version, `{"tools":{}}`))},
				mcp.MethodToolsCall: {unless(version, code, result(`{"result_type":"complete","content":[]}`))},
			})
			x := connect(t, srv, dialect.Options{}).call(mcp.MethodToolsCall, sayHello, agree)
			want(t, "answer", string(x.response.Result), `{"content":[]}`)
			probes := srv.all(mcp.MethodDiscover)
			want(t, "first probe", probes[0].header.Get(mcp.HeaderProtocolVersion), "2026-07-28")
			for _, s := range append(probes[1:], srv.all(mcp.MethodToolsCall)...) {
				want(t, "header", s.header.Get(mcp.HeaderProtocolVersion), version)
				want(t, "_meta", s.member("_meta", mcp.MetaProtocolVersion), `"`+version+`"`)
			}
			want(t, "after the probe", srv.methods(), "tools/call")
		}
	}
}

// TestI8WithoutASession: nobody discovered anything yet; the refusal of the very
// first call says which draft is spoken.
func TestI8WithoutASession(t *testing.T) {
	srv := newServer(t, script{mcp.MethodToolsCall: {unless("DRAFT-2026-v1", -32004, result(`{"result_type":"complete","content":[]}`))}})
	x := mounted(t, srv, dialect.Options{}).call(mcp.MethodToolsCall, sayHello, agree)
	want(t, "answer", string(x.response.Result), `{"content":[]}`)
}

func TestI8TheFinalVersionIsPreferred(t *testing.T) {
	srv := newServer(t, script{
		mcp.MethodDiscover:  {result(`{"supportedVersions":["DRAFT-2026-v1","2026-07-28"],"capabilities":{}}`)},
		mcp.MethodToolsCall: {result(hello)},
	})
	connect(t, srv, dialect.Options{}).call(mcp.MethodToolsCall, sayHello, agree)
	want(t, "header", srv.all(mcp.MethodToolsCall)[0].header.Get(mcp.HeaderProtocolVersion), "2026-07-28")
}

func TestA24DraftsAreRefusedWhenSwitchedOff(t *testing.T) {
	for name, discover := range map[string]reply{
		"by discover": early,
		"by refusal":  unless("2026-06-30", -32022, early),
	} {
		c := mounted(t, newServer(t, script{mcp.MethodDiscover: {discover}}), dialect.Options{Mode: dialect.Off})
		c.initialize()
		if e := c.opened.Error; e == nil || e.Code != -32603 || !strings.Contains(e.Message, "2026-06-30") {
			t.Errorf("%s: %+v", name, c.opened)
		}
	}
}

// TestI12HandshakesAreOutOfScope: a server of the drafts before May has no
// server/discover and begins with initialize.
func TestI12HandshakesAreOutOfScope(t *testing.T) {
	srv := newServer(t, script{"initialize": {result(
		`{"protocolVersion":"DRAFT-2026-v1","capabilities":{},"serverInfo":{"name":"a","version":"1"}}`)}})
	c := mounted(t, srv, dialect.Options{Mode: dialect.On})
	c.initialize()
	if e := c.opened.Error; e == nil || e.Code != -32603 || !strings.Contains(e.Message, "handshake") {
		t.Fatalf("%+v", c.opened)
	}
}

// TestI2ServerInfoMayStandAtTheTop: W6 until 2026-07-15.
func TestI2ServerInfoMayStandAtTheTop(t *testing.T) {
	for _, mode := range []dialect.Mode{dialect.Auto, dialect.On} {
		c := connect(t, newServer(t, script{mcp.MethodDiscover: {early}}), dialect.Options{Mode: mode})
		want(t, "serverInfo", string(rawjson.Get(c.opened.Result, "serverInfo")), `{"name":"early","version":"0.1"}`)
	}
}

// TestI7ErrorsAreReadByTheirShape: until June the codes were those of the
// implementation's own range.
func TestI7ErrorsAreReadByTheirShape(t *testing.T) {
	const capability = `{"requiredCapabilities":{"elicitation":{"url":{}}}}`
	t.Run("capability", func(t *testing.T) {
		srv := newServer(t, script{mcp.MethodDiscover: {early}, mcp.MethodToolsCall: {refuse(400, -32003, "missing capability", capability)}})
		x := connect(t, srv, dialect.Options{}).call(mcp.MethodToolsCall, sayHello, agree)
		if string(rawjson.Get(x.response.Result, "isError")) != "true" || !strings.Contains(string(x.response.Result), "elicitation") {
			t.Errorf("%+v", x.response)
		}
	})
	t.Run("header", func(t *testing.T) {
		mismatch := refuse(400, -32001, "Header mismatch: Mcp-Param-Region", "")
		srv := newServer(t, script{mcp.MethodDiscover: {early}, mcp.MethodToolsCall: {mismatch, result(hello)},
			mcp.MethodToolsList: {result(`{"tools":[{"name":"hello","inputSchema":{"type":"object"}}]}`)}})
		x := connect(t, srv, dialect.Options{}).call(mcp.MethodToolsCall, sayHello, agree)
		want(t, "answer", string(x.response.Result), hello)
		want(t, "B-25", srv.methods(), "tools/call tools/list tools/call")
	})
	for name, tt := range map[string]struct {
		discover reply
		mode     dialect.Mode
		code     int
		data     string
	}{
		"without the shape":     {early, dialect.Auto, -32003, `{"why":"quota"}`},
		"a code of its own":     {early, dialect.Auto, -32001, ""},
		"of a final server":     {result(final), dialect.Auto, -32003, capability},
		"where drafts are off":  {result(final), dialect.Off, -32004, `{"supported":["2026-06-30"],"requested":"2026-07-28"}`},
		"versions of a product": {result(final), dialect.Auto, -32000, `{"supported":["2026-01-01"],"requested":"2025-01-01"}`},
	} {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t, script{mcp.MethodDiscover: {tt.discover}, mcp.MethodToolsCall: {refuse(400, tt.code, "quota", tt.data)}})
			x := connect(t, srv, dialect.Options{Mode: tt.mode}).call(mcp.MethodToolsCall, sayHello, agree)
			if x.response.Error == nil || x.response.Error.Code != tt.code || string(x.response.Error.Data) != tt.data {
				t.Errorf("F-3: %+v %+v", x.response, x.response.Error)
			}
			want(t, "requests", srv.methods(), "tools/call")
		})
	}
}

// TestI9SecondsAreBelieved: the second list comes from the cache.
func TestI9SecondsAreBelieved(t *testing.T) {
	for name, tt := range map[string]struct {
		discover reply
		list     string
		requests string
	}{
		"W4 seconds":           {early, `{"tools":[],"ttl":60}`, "tools/list"},
		"W5 milliseconds":      {early, `{"tools":[],"ttlMs":60000}`, "tools/list"},
		"a member of its own":  {result(final), `{"resultType":"complete","tools":[],"ttl":60}`, "tools/list tools/list"},
		"in doubt none at all": {early, `{"tools":[],"ttl":"60"}`, "tools/list tools/list"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := newServer(t, script{mcp.MethodDiscover: {tt.discover}, mcp.MethodToolsList: {result(tt.list)}})
			c := connect(t, srv, dialect.Options{})
			for range 2 {
				x := c.call(mcp.MethodToolsList, `{}`, agree)
				want(t, "tools", string(rawjson.Get(x.response.Result, "tools")), "[]")
			}
			want(t, "requests", srv.methods(), tt.requests)
		})
	}
}
