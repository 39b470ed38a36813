package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpbridge/bridge/internal/redistest"
	"github.com/mcpbridge/bridge/internal/testport"
)

// programVariable makes the test binary the program itself, so that it can be killed.
const programVariable = "PROGRAM_OF_A_TEST"

// killable is a run of the program in a process of its own.
type killable struct {
	t       *testing.T
	args    []string
	process *exec.Cmd
	url     string
	session string

	silent chan struct{} // closed when it has said its last
	said   strings.Builder
}

// launch runs "serve" with arguments until it listens.
func launch(t *testing.T, args ...string) *killable {
	t.Helper()
	k := &killable{t: t, args: args}
	k.start("127.0.0.1:0")
	t.Cleanup(k.kill)
	return k
}

func (k *killable) start(listen string) {
	k.t.Helper()
	k.process = exec.Command(os.Args[0], append([]string{"serve", "--listen", listen, "--log.format", "json"}, k.args...)...)
	k.process.Env = append(os.Environ(), programVariable+"=1")
	errors, err := k.process.StderrPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	if err := k.process.Start(); err != nil {
		k.t.Fatal(err)
	}
	said := bufio.NewReader(errors)
	var all strings.Builder
	for k.url = ""; k.url == ""; {
		line, err := said.ReadString('\n')
		all.WriteString(line)
		if err != nil {
			k.t.Fatalf("the program does not listen:\n%s", all.String())
		}
		if _, rest, found := strings.Cut(line, "http://127.0.0.1"); found {
			address, _, _ := strings.Cut(rest, `"`)
			k.url = "http://127.0.0.1" + address
		}
	}
	k.silent = make(chan struct{})
	k.said.Reset()
	go func() { // ends with the process
		defer close(k.silent)
		_, _ = io.Copy(&k.said, said)
	}()
}

// kill ends the process as kill -9 does. It is idempotent.
func (k *killable) kill() {
	if k.process.ProcessState == nil {
		_ = k.process.Process.Kill()
		<-k.silent
		_ = k.process.Wait()
	}
	if k.t.Failed() {
		k.t.Logf("%s said:\n%s", k.url, k.said.String())
	}
}

// again kills the process and starts another one at the same address.
func (k *killable) again() {
	k.t.Helper()
	k.kill()
	address, _, _ := strings.Cut(strings.TrimPrefix(k.url, "http://"), "/")
	k.start(address)
}

// request sends a request of the session.
func (k *killable) request(method, body string, header ...string) *http.Response {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	k.t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, k.url, strings.NewReader(body))
	if err != nil {
		k.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if k.session != "" {
		r.Header.Set("Mcp-Session-Id", k.session)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(r)
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func (k *killable) status(method, body string) int {
	k.t.Helper()
	resp := k.request(method, body)
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func (k *killable) open() {
	k.t.Helper()
	k.session = ""
	k.session = k.request(http.MethodPost, initialize).Header.Get("Mcp-Session-Id")
	if k.session == "" {
		k.t.Fatal("no session")
	}
}

func TestSessionsSurviveTheProcess(t *testing.T) {
	server := answering(t, http.StatusOK, cannedAnswers["modern"])
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			k := launch(t, append([]string{"--upstream", server.URL}, store(t)...)...)
			k.open()
			for range 3 {
				k.again()
				if status := k.status(http.MethodPost, listTools); status != http.StatusOK {
					t.Fatalf("after kill -9 a call answers %d", status)
				}
			}
			if status := k.status(http.MethodDelete, ""); status != http.StatusNoContent {
				t.Errorf("DELETE answers %d", status)
			}
			k.again()
			if status := k.status(http.MethodPost, listTools); status != http.StatusNotFound {
				t.Errorf("after its end a call answers %d", status)
			}
		})
	}
}

// stores returns the settings of each kind of store that outlives the process.
func stores(t *testing.T) map[string]func(*testing.T) []string {
	file := func(more ...string) func(*testing.T) []string {
		return func(t *testing.T) []string {
			return append([]string{"--store.url", "file:" + filepath.Join(t.TempDir(), "sessions.db")}, more...)
		}
	}
	return map[string]func(*testing.T) []string{
		"file":         file(),
		"relaxed file": file("--store.durability", "relaxed"),
		"redis": func(t *testing.T) []string {
			return []string{"--store.url", "redis://" + redistest.Start(t).Addr(), "--store.keys", keyFile(t)}
		},
	}
}

func keyFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
	if err := os.WriteFile(path, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestStoreInAFileMakesItsOwnKey(t *testing.T) {
	server := answering(t, http.StatusOK, cannedAnswers["modern"])
	path := filepath.Join(t.TempDir(), "sessions.db")
	k := launch(t, "--upstream", server.URL, "--store.url", "file:"+path)
	k.open()
	k.kill()
	for _, name := range []string{path, path + ".keys"} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), k.session) {
		t.Errorf("the file shows the session's id (%v)", err)
	}
	if err := os.Remove(path + ".keys"); err != nil { // and another one is made
		t.Fatal(err)
	}
	k.again()
	if status := k.status(http.MethodPost, listTools); status != http.StatusNotFound {
		t.Errorf("a session whose key is gone answers %d", status)
	}
	if status := k.status(http.MethodPost, initialize); status != http.StatusOK {
		t.Errorf("a new session answers %d", status)
	}
}

func TestStoresThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("not a store\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	const upstream = "--upstream=http://127.0.0.1:1/mcp"
	dead := "redis://:sesame@" + testport.Closed
	for _, tc := range []struct{ says, url, keys string }{
		{"unknown", "s3://bucket", ""},
		{"names no file", "file:", ""},
		{"damaged", "file:" + garbage, ""},
		{"does not exist", "file:" + filepath.Join(dir, "no", "such"), ""},
		{"store.keys: is missing", "redis://localhost", ""},
		{"connection refused", dead, keyFile(t)},
		{"is no key", "file:" + filepath.Join(dir, "new"), garbage},
		{"no effect with memory", "memory:", keyFile(t)},
	} {
		args := []string{"serve", "--listen=127.0.0.1:0", upstream, "--store.url=" + tc.url, "--store.keys=" + tc.keys}
		err := fails(t, nil, args...)
		if !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: serve says %v", tc.url, err)
		}
		file := filepath.Join(dir, "bridge.yaml")
		text := "upstream: http://127.0.0.1:1/mcp\nstore:\n  url: \"" + tc.url + "\"\n  keys: \"" + tc.keys + "\"\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := fails(t, nil, "config", "validate", file); !strings.Contains(err.Error(), "store") || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: validate says %v", tc.url, err)
		}
	}
}

func TestValidateMakesNoStoreAndMindsNoneInUse(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sessions.db")
	file := filepath.Join(t.TempDir(), "bridge.yaml")
	if err := os.WriteFile(file, []byte("upstream: http://127.0.0.1:1/mcp\nstore:\n  url: file:"+path+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	prints(t, nil, "config", "validate", file)
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) > 0 {
		t.Errorf("validate made %v", entries)
	}
	p := start(t, "serve", "--listen=127.0.0.1:0", "--config", file)
	prints(t, nil, "config", "validate", file)
	p.stop()
	if err := p.wait(); err != nil {
		t.Error(err)
	}
	prints(t, nil, "config", "validate", file)
}

// TestServerThatIsDownKeepsItsClientsSessions: what cannot be brought back now can be
// later.
func TestServerThatIsDownKeepsItsClientsSessions(t *testing.T) {
	server := answering(t, http.StatusOK, cannedAnswers["modern"])
	k := launch(t, "--upstream", server.URL, "--timeouts.connect", "1s", "--store.url", "file:"+filepath.Join(t.TempDir(), "sessions.db"))
	k.open()
	server.Close()
	k.again()
	began := time.Now()
	if status := k.status(http.MethodPost, listTools); status != http.StatusServiceUnavailable {
		t.Errorf("a call answers %d after %v", status, time.Since(began))
	}
}
