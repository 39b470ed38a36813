//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/testcert"
)

// A store whose directory is missing is told of as that, not as keys with a name that nobody gave.
func TestTheDirectoryOfAStoreIsNamed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sub")
	want := "store.url: the directory " + dir + " does not exist; create it, writable for the bridge's user"
	if err := fails(t, nil, "config", "validate", configuration(t, "file:"+filepath.Join(dir, "s.db"), "")); err.Error() != want {
		t.Errorf("validate: %v", err)
	}
	if err := fails(t, nil, "serve", "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1/mcp", "--store.url", "file:"+filepath.Join(dir, "s.db")); err.Error() != want {
		t.Errorf("serve: %v", err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fails(t, nil, "config", "validate", configuration(t, "file:"+filepath.Join(dir, "s.db"), "")); err.Error() != "store.url: "+dir+" is no directory" {
		t.Errorf("of a file: %v", err)
	}
	if os.Geteuid() == 0 {
		return // who may write everywhere
	}
	locked := t.TempDir()
	if err := os.Chmod(locked, 0o500); err != nil {
		t.Fatal(err)
	}
	if err := fails(t, nil, "config", "validate", configuration(t, "file:"+filepath.Join(locked, "s.db"), "")); err.Error() != "store.url: no file can be made in "+locked+": permission denied" {
		t.Errorf("of one that is not ours: %v", err)
	}
}

// validate looks at all that serve needs, at once, and serve says the same, with the status of a wrong configuration:
// no supervisor is to start it again and again.
func TestWhatServeNeedsIsLookedAtAtOnce(t *testing.T) {
	cert, key, _ := testcert.Write(t, t.TempDir(), 1)
	file := filepath.Join(t.TempDir(), "bridge.yaml")
	text := `
listen: unix:/no/listen/s
admin: {listen: 'unix:/no/admin/s', token-file: /no/token, report: /no/report/r, tls: {cert: /no/cert, key: ` + key + `}}
record: /no/record
store: {url: 'file:/no/store/s.db'}
upstreams:
- {path: /a, upstream: 'http://h/mcp', sampling: {provider: openai, model: m, key-file: /no/key}}
- {path: /b, upstream: 'http://h/mcp', auth: {mode: agent, client-id: a, issuer: 'https://i', client-secret-file: /no/secret, client-key: ` + cert + `, dir: ` + file + `/x}}
- {path: /c, command: [/no/command]}
- {path: /d, command: [/no/command], upstream-tls: {ca: /no/ca}, public-url: 'https://b', auth: {mode: terminate, clients: {issuer: 'https://i'}}}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const missing = " does not exist; create it, writable for the bridge's user"
	want := []string{
		"the directory of unix:/no/listen/s does not exist; create it, or choose another path with --listen unix:OTHER-PATH",
		"the directory of unix:/no/admin/s does not exist; create it, or choose another path with --admin.listen unix:OTHER-PATH",
		"admin.token-file: open /no/token: no such file or directory",
		"admin.tls.cert: the certificate cannot be loaded from /no/cert and " + key + ": stat /no/cert: no such file or directory",
		"admin.report: stat /no/report: no such file or directory",
		"record: the directory /no/record" + missing,
		"OTEL_EXPORTER_OTLP_CERTIFICATE: no certificate can be read from /no/otel",
		"/a: sampling.key-file: open /no/key: no such file or directory",
		"/b: auth.client-secret-file: open /no/secret: no such file or directory",
		"/b: auth.client-key cannot be used: ",
		"/b: auth.dir: no file can be made in " + file + "/x: not a directory",
		"/d: upstream-tls.ca: open /no/ca: no such file or directory",
		"store.url: the directory /no/store" + missing,
	}
	environ := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_CERTIFICATE=/no/otel"}
	for _, args := range [][]string{{"config", "validate", file}, {"serve", "--config", file}} {
		err := fails(t, environ, args...)
		lines := strings.Split(err.Error(), "\n  ")
		if exitCode(err) != exitUsage || len(lines) != len(want)+1 {
			t.Errorf("%q: status %d, %d lines", args, exitCode(err), len(lines))
		}
		for i, line := range lines[1:] {
			if i < len(want) && !strings.HasPrefix(line, want[i]) {
				t.Errorf("%q: got\n%s\nwant\n%s", args, line, want[i])
			}
		}
	}
}

// Each setting that names a file or a directory is looked at: whoever adds one comes here.
func TestNoSettingThatNamesAFileIsForgotten(t *testing.T) {
	const looked = " tls.cert tls.key record upstream-tls.ca upstream-tls.ca-only upstream-tls.cert upstream-tls.key auth.dir auth.client-secret-file auth.client-key" +
		" auth.idp.token-file sampling.key-file store.keys admin.token-file admin.report admin.tls.cert admin.tls.key "
	for _, o := range config.Options() {
		names := regexp.MustCompile(`^(A file|A directory|The directory)`).MatchString(o.Doc)
		if names != strings.Contains(looked, " "+o.Key+" ") {
			t.Errorf("%s: %s", o.Key, o.Doc)
		}
	}
}

// What is needed only later is mentioned, for it may come.
func TestFilesThatAreNeededLaterAreMentioned(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bridge.yaml")
	text := "upstreams:\n- {path: /a, command: [/no/command, hush]}\n- {path: /b, upstream: 'http://h/mcp', auth: {mode: agent, grant: enterprise, client-id: a, idp: {issuer: 'https://i', client-id: b, token-file: /no/id}}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := prints(t, nil, "config", "validate", file)
	for _, want := range []string{
		"note: /a: command: there is no program command for this user; serve begins without it, and keeps trying\n",
		"note: /b: auth.idp.token-file: open /no/id: no such file or directory\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// A pipe has been read when serve fails: it is not read again, where nobody may write any more.
func TestAPipeIsNotReadTwice(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("something else")
	if err := explained([]look{{[]string{pipe}, func() error { return errors.New("it was read") }}}, failed); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}
