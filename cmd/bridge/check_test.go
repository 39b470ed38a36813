package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/mcp"
)

// check runs `bridge check` and returns what it prints.
func check(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	var text bytes.Buffer
	err = run(t.Context(), append([]string{"check"}, args...), surroundings{in: strings.NewReader(""), out: &text, err: io.Discard})
	return text.String(), err
}

func TestCheckShowsWhichToolsWhichClientsWillNotSee(t *testing.T) {
	server := answering(t, http.StatusNotFound, map[string]string{
		mcp.MethodDiscover: discovered,
		mcp.MethodToolsList: `{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[
			{"name":"good","inputSchema":{"type":"object"}},
			{"name":"no\u001b[31mschema","inputSchema":7},
			{"name":"illegal","inputSchema":{"type":"object","properties":{"a":{"type":"array","x-mcp-header":"A"}}}}]}}`,
	})
	out, err := check(t, server.URL+"?token=hush")
	if err != nil {
		t.Error(err)
	}
	for _, part := range []string{
		"usable         yes", "era            modern (2026-07-28)", "server         canned 1", "capabilities   tools",
		"tools          3", "- illegal is left out for every client: x-mcp-header of",
		"2024-11-05     1 of 3 tools; questions: sampling, roots", "- without no[31mschema: ",
	} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is not in\n%s", part, out)
		}
	}
	if strings.Contains(out, "hush") || strings.Contains(out, "\x1b") {
		t.Errorf("the report tells a secret or controls the terminal:\n%q", out)
	}
}

func TestCheckFailsForServersThatTheBridgeCannotUse(t *testing.T) {
	old := answering(t, http.StatusBadRequest, map[string]string{
		mcp.MethodInitialize: `{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"old","version":"1"}}}`,
	})
	for url, want := range map[string]string{deadURL(t): "connection refused", old.URL: "it offers 2025-06-18"} {
		out, err := check(t, url)
		if !errors.Is(err, errUnusable) || !strings.Contains(out, "usable         no") || !strings.Contains(out, want) {
			t.Errorf("check says %v and\n%s", err, out)
		}
	}
}

func TestI3CheckOfAServerThatSpeaksADraft(t *testing.T) {
	server := answering(t, http.StatusNotFound, map[string]string{
		mcp.MethodDiscover:  strings.Replace(discovered, "2026-07-28", "DRAFT-2026-v1", 1),
		mcp.MethodToolsList: `{"jsonrpc":"2.0","id":ID,"result":{"result_type":"complete","tools":[]}}`,
	})
	if out, err := check(t, server.URL); err != nil || !strings.Contains(out, "modern (DRAFT-2026-v1)") {
		t.Errorf("check says %v and\n%s", err, out)
	}
	if out, err := check(t, "--draft", "off", server.URL); !errors.Is(err, errUnusable) || !strings.Contains(out, "no common version") {
		t.Errorf("switched off, check says %v and\n%s", err, out)
	}
}

func TestCheckOfAServerThatWantsAuthorization(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer good" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		canned(http.StatusNotFound, map[string]string{mcp.MethodDiscover: discovered}).ServeHTTP(w, r)
	}))
	defer server.Close()
	if out, err := check(t, server.URL); err != nil || !strings.Contains(out, "wanted (HTTP 401)") {
		t.Errorf("without credentials: %v and\n%s", err, out)
	}
	if out, err := check(t, server.URL, "--header", "Authorization: Bearer good"); err != nil || !strings.Contains(out, "canned 1") {
		t.Errorf("with credentials: %v and\n%s", err, out)
	}
}

func TestCheckPrintsJSON(t *testing.T) {
	server := answering(t, http.StatusNotFound, map[string]string{mcp.MethodDiscover: discovered})
	out, err := check(t, "--json", server.URL)
	if err != nil {
		t.Fatal(err)
	}
	var got report
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if !got.Usable || got.Era != "modern" || !reflect.DeepEqual(got.Capabilities, []string{"tools"}) || len(got.Clients) != len(mcp.Legacy) || got.Problem != "" {
		t.Errorf("got %+v", got)
	}
}
