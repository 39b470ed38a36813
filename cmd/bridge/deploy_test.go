package main

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/testmode"
)

// What deploy/ tells users to do is done here, as far as it goes without the
// engine that it is for: the bridge is started with the arguments and variables
// of each manifest and asked what its probes ask.

func deployed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../deploy/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// obeys starts the bridge as a manifest does, on a port of the test, and fails
// unless it serves and every probe is answered by somebody.
func obeys(t *testing.T, args, environ []string, probes ...string) {
	t.Helper()
	if len(args) == 0 || args[0] != "serve" {
		t.Fatalf("the arguments are %q", args)
	}
	command := []string{"--"}
	if dash := slices.Index(args, "--"); dash >= 0 {
		args, command = args[:dash], args[dash:]
	}
	args = append(slices.Clone(args), "--listen", "127.0.0.1:0")
	if len(command) > 1 {
		args = append(args, command...)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p := &process{t: t, errors: &lines{grown: make(chan struct{}, 1)}, stop: cancel, done: make(chan struct{})}
	started := make(chan string, 1)
	go func() {
		defer close(p.done)
		p.err = run(ctx, args, surroundings{in: strings.NewReader(""), out: io.Discard, err: p.errors, environ: append(testmode.Environ(), environ...), started: func(a string) { started <- a }})
	}()
	select {
	case p.address = <-started:
		for _, probe := range probes {
			if status, _ := p.get(probe); status == 404 {
				t.Errorf("nobody answers the probe of %s", probe)
			}
		}
	case <-p.done:
	case <-time.After(patience):
		t.Error("the program does not listen")
	}
	cancel()
	if err := p.wait(); err != nil {
		t.Errorf("with %q it ended with %v", args, err)
	}
}

// drainTime is what manifests must leave time for.
func drainTime() time.Duration { return config.Default().Timeouts.Drain }

type (
	manifest struct {
		Kind string `yaml:"kind"`
		Spec struct {
			Template struct {
				Spec pod `yaml:"spec"`
			} `yaml:"template"`
			Ports []struct {
				TargetPort string `yaml:"targetPort"`
			} `yaml:"ports"`
		} `yaml:"spec"`
	}
	pod struct {
		Grace      int         `yaml:"terminationGracePeriodSeconds"`
		Containers []container `yaml:"containers"`
	}
	container struct {
		Name  string   `yaml:"name"`
		Args  []string `yaml:"args"`
		Ports []struct {
			Name string `yaml:"name"`
			Port int    `yaml:"containerPort"`
		} `yaml:"ports"`
		Startup   probe `yaml:"startupProbe"`
		Liveness  probe `yaml:"livenessProbe"`
		Readiness probe `yaml:"readinessProbe"`
		Lifecycle struct {
			PreStop struct {
				Sleep struct {
					Seconds int `yaml:"seconds"`
				} `yaml:"sleep"`
			} `yaml:"preStop"`
		} `yaml:"lifecycle"`
		Security struct {
			NonRoot    bool  `yaml:"runAsNonRoot"`
			User       int   `yaml:"runAsUser"`
			ReadOnly   bool  `yaml:"readOnlyRootFilesystem"`
			Escalation *bool `yaml:"allowPrivilegeEscalation"`
			Caps       struct {
				Drop []string `yaml:"drop"`
			} `yaml:"capabilities"`
			Seccomp struct {
				Type string `yaml:"type"`
			} `yaml:"seccompProfile"`
		} `yaml:"securityContext"`
	}
	probe struct {
		Get struct {
			Path string `yaml:"path"`
			Port string `yaml:"port"`
		} `yaml:"httpGet"`
	}
)

func TestTheSidecarManifest(t *testing.T) {
	var deployment, service manifest
	for _, text := range strings.Split(deployed(t, "kubernetes/sidecar.yaml"), "\n---\n") {
		var m manifest
		if err := yaml.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		switch m.Kind {
		case "Deployment":
			deployment = m
		case "Service":
			service = m
		}
	}
	pod := deployment.Spec.Template.Spec
	if len(pod.Containers) != 2 || len(service.Spec.Ports) != 1 {
		t.Fatalf("pod %+v, service %+v", pod, service.Spec)
	}
	server, bridge := pod.Containers[0], pod.Containers[1]
	probes := []probe{bridge.Startup, bridge.Liveness, bridge.Readiness}
	paths := []string{}
	for _, p := range probes {
		paths = append(paths, p.Get.Path)
		if p.Get.Port != bridge.Ports[0].Name {
			t.Errorf("a probe asks port %q", p.Get.Port)
		}
	}
	obeys(t, bridge.Args, nil, paths...)
	if service.Spec.Ports[0].TargetPort != bridge.Ports[0].Name || !slices.Contains(bridge.Args, ":8080") || bridge.Ports[0].Port != 8080 {
		t.Errorf("the service leads to %q, the bridge listens as %q says", service.Spec.Ports[0].TargetPort, bridge.Args)
	}
	stopping := time.Duration(bridge.Lifecycle.PreStop.Sleep.Seconds)*time.Second + drainTime()
	if grace := time.Duration(pod.Grace) * time.Second; grace <= stopping {
		t.Errorf("the pod has %s to stop, the bridge takes up to %s", grace, stopping)
	}
	if lives := time.Duration(server.Lifecycle.PreStop.Sleep.Seconds) * time.Second; lives < stopping {
		t.Errorf("the server goes after %s, the bridge needs it for up to %s", lives, stopping)
	}
	s := bridge.Security
	if !s.NonRoot || s.User == 0 || !s.ReadOnly || s.Escalation == nil || *s.Escalation || !slices.Equal(s.Caps.Drop, []string{"ALL"}) || s.Seccomp.Type != "RuntimeDefault" {
		t.Errorf("the bridge may do too much: %+v", s)
	}
}

func TestTheComposeFile(t *testing.T) {
	var file struct {
		Services map[string]struct {
			Command     []string          `yaml:"command"`
			Environment map[string]string `yaml:"environment"`
			Grace       string            `yaml:"stop_grace_period"`
			User        string            `yaml:"user"`
			ReadOnly    bool              `yaml:"read_only"`
			Drop        []string          `yaml:"cap_drop"`
			Security    []string          `yaml:"security_opt"`
			Ports       []string          `yaml:"ports"`
			Networks    []string          `yaml:"networks"`
		} `yaml:"services"`
		Networks map[string]any `yaml:"networks"`
	}
	if err := yaml.Unmarshal([]byte(deployed(t, "compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	for name, service := range file.Services {
		for _, network := range service.Networks {
			if _, ok := file.Networks[network]; !ok {
				t.Errorf("%s is in the network %s, which is not declared", name, network)
			}
		}
	}
	bridge := file.Services["bridge"]
	var environ []string
	for name, value := range bridge.Environment {
		environ = append(environ, name+"="+value)
	}
	obeys(t, bridge.Command, environ, "/healthz", "/readyz")
	if grace, err := time.ParseDuration(bridge.Grace); err != nil || grace <= drainTime() {
		t.Errorf("it has %q to stop", bridge.Grace)
	}
	if bridge.User == "" || strings.HasPrefix(bridge.User, "0") || !bridge.ReadOnly || !slices.Contains(bridge.Drop, "ALL") || !slices.Contains(bridge.Security, "no-new-privileges:true") {
		t.Errorf("the bridge may do too much: %+v", bridge)
	}
	// A port of this machine's loopback must not be open to pages that rebind a name.
	if !strings.HasPrefix(bridge.Ports[0], "127.0.0.1:") || !slices.Contains(bridge.Command, "--allowed-hosts") {
		t.Errorf("ports %q, command %q", bridge.Ports, bridge.Command)
	}
}

// TestTheServiceMonitorFindsTheAdminService: its labels and port are those of the service.
func TestTheServiceMonitorFindsTheAdminService(t *testing.T) {
	type manifest struct {
		Kind     string
		Metadata struct{ Labels map[string]string }
		Spec     struct {
			Selector  map[string]any
			Ports     []struct{ Name string }
			Endpoints []struct{ Port, Path, Scheme string }
		}
	}
	found := map[string]manifest{}
	for _, text := range strings.Split(deployed(t, "kubernetes/servicemonitor.yaml"), "\n---\n") {
		var m manifest
		if err := yaml.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		found[m.Kind] = m
	}
	service, monitor := found["Service"], found["ServiceMonitor"]
	for name, value := range monitor.Spec.Selector["matchLabels"].(map[string]any) {
		if service.Metadata.Labels[name] != value {
			t.Errorf("the service has no label %s=%v", name, value)
		}
	}
	if len(monitor.Spec.Endpoints) != 1 || monitor.Spec.Endpoints[0].Port != service.Spec.Ports[0].Name || monitor.Spec.Endpoints[0].Path != "/metrics" ||
		monitor.Spec.Endpoints[0].Scheme != "https" {
		t.Errorf("%+v", monitor.Spec.Endpoints)
	}
}
