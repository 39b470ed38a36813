package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// instruction is one of a Dockerfile; stage counts its FROMs.
type instruction struct {
	stage      int
	name, text string
}

func instructions(t *testing.T, text string) (all []instruction) {
	t.Helper()
	stage := 0
	text = regexp.MustCompile(`(?m)^\s*#.*\n`).ReplaceAllString(text, "")
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" {
			continue
		}
		if name == "FROM" {
			stage++
		}
		all = append(all, instruction{stage, name, strings.TrimSpace(rest)})
	}
	return all
}

// only returns the one instruction of this name in a stage.
func only(t *testing.T, all []instruction, stage int, name string) string {
	t.Helper()
	var found []string
	for _, i := range all {
		if i.stage == stage && i.name == name {
			found = append(found, i.text)
		}
	}
	if len(found) != 1 {
		t.Fatalf("stage %d has %d times %s", stage, len(found), name)
	}
	return found[0]
}

func TestTheImage(t *testing.T) {
	all := instructions(t, deployed(t, "Dockerfile"))
	last := all[len(all)-1].stage
	defaults := map[string]string{}
	for _, i := range all {
		switch i.name {
		case "ARG":
			name, value, _ := strings.Cut(i.text, "=")
			defaults[name] = value
		case "FROM", "RUN", "COPY", "WORKDIR", "USER", "ENV", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT", "CMD":
		default: // ADD fetches and unpacks, VOLUME is written to
			t.Errorf("the Dockerfile has %s %s", i.name, i.text)
		}
		if i.stage == last && i.name == "RUN" {
			t.Errorf("the image has no shell to run %s", i.text)
		}
	}
	if base := only(t, all, last, "FROM"); base != "${BASE_IMAGE}" || !regexp.MustCompile(`/distroless/static.*:nonroot$`).MatchString(defaults["BASE_IMAGE"]) {
		t.Errorf("the image is made from %s, %s", base, defaults["BASE_IMAGE"])
	}
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if goVersion := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod); defaults["GO_IMAGE"] != "golang:"+string(goVersion[1]) {
		t.Errorf("it is built by %s, go.mod wants %s", defaults["GO_IMAGE"], goVersion[1])
	}
	if user := only(t, all, last, "USER"); !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(user) {
		t.Errorf("it runs as %s; Kubernetes recognises only numbers as not root", user)
	}
	build := all[slices.IndexFunc(all, func(i instruction) bool { return i.name == "RUN" && strings.Contains(i.text, "go build") })].text
	for _, part := range []string{"CGO_ENABLED=0", "-trimpath", "GOARCH=$TARGETARCH", "-X main.version=$VERSION", "-o /bridge"} {
		if !strings.Contains(build, part) {
			t.Errorf("the build lacks %s", part)
		}
	}
	if copied := only(t, all, last, "COPY"); copied != "--from=build /bridge /bridge" {
		t.Errorf("COPY %s", copied)
	}
	var entry, command []string
	for name, into := range map[string]*[]string{"ENTRYPOINT": &entry, "CMD": &command} {
		if err := json.Unmarshal([]byte(only(t, all, last, name)), into); err != nil {
			t.Errorf("%s is not in exec form: %v", name, err)
		}
	}
	if !slices.Equal(entry, []string{"/bridge"}) {
		t.Errorf("ENTRYPOINT %q", entry)
	}
	environ := strings.Fields(only(t, all, last, "ENV"))
	if !slices.Contains(environ, "BRIDGE_LISTEN=:"+only(t, all, last, "EXPOSE")) {
		t.Errorf("ENV %q, EXPOSE %s", environ, only(t, all, last, "EXPOSE"))
	}
	obeys(t, command, append(environ, "BRIDGE_UPSTREAM=http://127.0.0.1:9/mcp"))
}

// buildImage puts a program of this name, which only says how it was called, on a
// PATH without any real one, and returns what the script made of it.
func buildImage(t *testing.T, engine, version string, environ ...string) (string, error) {
	t.Helper()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, engine), []byte("#!/bin/sh\necho \"$(basename \"$0\") $*\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "../../deploy/build-image.sh", version)
	cmd.Env = append([]string{"PATH=" + bin + ":/usr/bin:/bin", "ENGINE=" + engine}, environ...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestTheImageIsBuiltByDockerAndPodman(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash")
	}
	for _, tc := range []struct {
		engine  string
		environ []string
		want    []string
	}{
		{"docker", nil, []string{"docker buildx build --file deploy/Dockerfile --tag bridge:v1.2.3 --build-arg VERSION=v1.2.3", "--load ."}},
		{"docker", []string{"PLATFORMS=linux/amd64,linux/arm64", "PUSH=1", "IMAGE=r.example/b"}, []string{"--tag r.example/b:v1.2.3", "--platform linux/amd64,linux/arm64 --push ."}},
		{"docker", []string{"BASE_IMAGE=mirror/static@sha256:0"}, []string{"--build-arg BASE_IMAGE=mirror/static@sha256:0"}},
		{"podman", nil, []string{"podman build --file deploy/Dockerfile --tag bridge:v1.2.3"}},
		{"podman", []string{"PLATFORMS=linux/amd64,linux/arm64", "PUSH=1"}, []string{"podman build --platform linux/amd64,linux/arm64", "--manifest bridge:v1.2.3", "podman manifest push --all bridge:v1.2.3"}},
	} {
		out, err := buildImage(t, tc.engine, "v1.2.3", tc.environ...)
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		for _, want := range tc.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s %v: no %q in\n%s", tc.engine, tc.environ, want, out)
			}
		}
	}
	if out, err := buildImage(t, "docker", "latest"); err == nil {
		t.Errorf("a release named latest was built: %s", out)
	}
}

func TestTheImageScriptSaysWhatIsMissing(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"bash", "dirname"} {
		program, err := exec.LookPath(name)
		if err != nil {
			t.Skip("no " + name)
		}
		if err := os.Symlink(program, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct{ engine, docker, want string }{
		{"", "", "neither docker nor podman is installed"},
		{"podman", "", "podman is not installed"},
		{"nerdctl", "", "ENGINE is docker or podman, not nerdctl"},
		{"", "#!/bin/sh\necho \"unknown command: docker $1\" >&2\nexit 1\n", "docker is installed without buildx"},
	} {
		if tc.docker != "" {
			if err := os.WriteFile(filepath.Join(bin, "docker"), []byte(tc.docker), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), "bash", "../../deploy/build-image.sh", "v1.2.3")
		cmd.Env = []string{"PATH=" + bin, "ENGINE=" + tc.engine}
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), tc.want) {
			t.Errorf("ENGINE=%s: %v, no %q in\n%s", tc.engine, err, tc.want, out)
		}
	}
}

// Snippets for clients: what they start is started, without a conversation.
func TestTheSnippetsForClients(t *testing.T) {
	for name, list := range map[string]string{"claude-desktop": "mcpServers", "claude-code": "mcpServers", "cursor": "mcpServers", "vscode": "servers"} {
		var file map[string]json.RawMessage
		if err := json.Unmarshal([]byte(deployed(t, "clients/"+name+".json")), &file); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var servers map[string]struct {
			Type    string            `json:"type"`
			URL     string            `json:"url"`
			Command string            `json:"command"`
			Args    []string          `json:"args"`
			Env     map[string]string `json:"env"`
		}
		if err := json.Unmarshal(file[list], &servers); err != nil || len(servers) == 0 {
			t.Fatalf("%s: %v, %d servers", name, err, len(servers))
		}
		for title, server := range servers {
			if server.URL != "" {
				if server.URL != "http://127.0.0.1:8080/mcp" || server.Command != "" {
					t.Errorf("%s: %s is at %s", name, title, server.URL)
				}
				continue
			}
			if filepath.Base(server.Command) != "bridge" || len(server.Args) == 0 || server.Args[0] != "stdio" {
				t.Errorf("%s: %s starts %s %q", name, title, server.Command, server.Args)
				continue
			}
			var environ []string
			for name, value := range server.Env {
				environ = append(environ, name+"="+value)
			}
			var out, log strings.Builder
			err := run(t.Context(), server.Args, surroundings{in: strings.NewReader(""), out: &out, err: &log, environ: environ})
			if err != nil || out.Len() > 0 {
				t.Errorf("%s: %s: %v, printed %q\n%s", name, title, err, &out, &log)
			}
		}
	}
}
