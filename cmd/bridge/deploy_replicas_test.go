package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/internal/redistest"
)

// settingsOf are those that a manifest's arguments make of a configuration.
func settingsOf(t *testing.T, args []string, file string) config.Config {
	t.Helper()
	if len(args) == 0 || args[0] != "serve" {
		t.Fatalf("the arguments are %q", args)
	}
	var set []config.Setting
	for i := 1; i+1 < len(args); i += 2 {
		key := strings.TrimPrefix(args[i], "--")
		if key == "config" {
			continue
		}
		set = append(set, config.Setting{Key: key, Values: []string{args[i+1]}})
	}
	cfg, err := config.Load(config.Sources{File: file, Flags: set})
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return cfg
}

// replicable checks what replicas that share a store need.
func replicable(t *testing.T, cfg *config.Config, redis string) {
	t.Helper()
	if cfg.Store.URL != "redis://"+redis || cfg.Store.Keys == "" || cfg.Replica.Listen != ":8091" || !strings.HasSuffix(cfg.Replica.Address, ":8091") {
		t.Errorf("it keeps %q, and is reached by the others at %q", cfg.Store.URL, cfg.Replica.Address)
	}
}

// keeps checks what a Redis needs that holds sessions.
func keeps(t *testing.T, args []string) {
	t.Helper()
	text := strings.Join(args, " ") + " "
	for _, wanted := range []string{"--appendonly yes ", "--maxmemory-policy noeviction "} {
		if !strings.Contains(text, wanted) {
			t.Errorf("Redis runs with %q, without %s", args, wanted)
		}
	}
}

// replicasObey starts the bridge as a manifest does, with a Redis of this machine.
func replicasObey(t *testing.T, args []string, redis *redistest.Server) {
	t.Helper()
	obeys(t, append(slices.Clone(args), "--store.url", "redis://"+redis.Addr(), "--store.keys", keyFile(t),
		"--replica.listen", "127.0.0.1:0", "--replica.address", ""), nil, "/healthz", "/readyz")
}

func TestTheManifestOfReplicas(t *testing.T) {
	type meta struct {
		Name string `yaml:"name"`
	}
	type labels struct {
		Match map[string]string `yaml:"matchLabels"`
	}
	type object struct {
		Kind     string            `yaml:"kind"`
		Metadata meta              `yaml:"metadata"`
		Data     map[string]string `yaml:"data"`
		Spec     struct {
			Replicas int    `yaml:"replicas"`
			Affinity any    `yaml:"sessionAffinity"`
			Selected labels `yaml:"podSelector"`
			Ingress  []struct {
				From []struct {
					Pods labels `yaml:"podSelector"`
				} `yaml:"from"`
				Ports []struct {
					Port string `yaml:"port"`
				} `yaml:"ports"`
			} `yaml:"ingress"`
			Template struct {
				Spec pod `yaml:"spec"`
			} `yaml:"template"`
			Ports []struct {
				TargetPort string `yaml:"targetPort"`
			} `yaml:"ports"`
		} `yaml:"spec"`
	}
	objects := map[string]object{}
	for _, text := range strings.Split(deployed(t, "kubernetes/replicas.yaml"), "\n---\n") {
		var o object
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		objects[o.Kind+" "+o.Metadata.Name] = o
		if o.Spec.Affinity != nil {
			t.Errorf("%s keeps clients with their pods", o.Kind)
		}
	}
	deployment, service, redis := objects["Deployment mcp-bridge"], objects["Service mcp-bridge"], objects["StatefulSet mcp-bridge-redis"]
	if deployment.Spec.Replicas != 3 || len(deployment.Spec.Template.Spec.Containers) != 1 || len(redis.Spec.Template.Spec.Containers) != 1 {
		t.Fatalf("%+v", deployment.Spec)
	}
	if strings.Contains(deployed(t, "kubernetes/replicas.yaml"), "subPath:") {
		t.Error("a file that is mounted by subPath is never updated")
	}
	open := map[string]string{} // who reaches which port of a bridge; "": everybody
	name := deployment.Metadata.Name
	if policy := objects["NetworkPolicy mcp-bridge"]; policy.Spec.Selected.Match["app.kubernetes.io/name"] == name {
		for _, rule := range policy.Spec.Ingress {
			for _, port := range rule.Ports {
				open[port.Port] = ""
				for _, from := range rule.From {
					open[port.Port] += from.Pods.Match["app.kubernetes.io/name"]
				}
			}
		}
	}
	if !maps.Equal(open, map[string]string{"mcp": "", "replicas": name}) {
		t.Errorf("a bridge's ports are reached by %q", open)
	}
	file := filepath.Join(t.TempDir(), "bridge.yaml")
	if err := os.WriteFile(file, []byte(objects["ConfigMap mcp-bridge"].Data["bridge.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	pod := deployment.Spec.Template.Spec
	bridge := pod.Containers[0]
	args := slices.Clone(bridge.Args)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "$(POD_IP)", "10.0.0.7")
	}
	cfg := settingsOf(t, args, file)
	replicable(t, &cfg, "mcp-bridge-redis:6379")
	keeps(t, redis.Spec.Template.Spec.Containers[0].Args)
	if !slices.Contains(args, "/etc/mcp-bridge/config/bridge.yaml") || len(service.Spec.Ports) != 1 || service.Spec.Ports[0].TargetPort != bridge.Ports[0].Name || cfg.Listen != ":8080" || bridge.Ports[0].Port != 8080 {
		t.Errorf("the service leads to %+v, the bridge listens on %s", service.Spec.Ports, cfg.Listen)
	}
	stopping := time.Duration(bridge.Lifecycle.PreStop.Sleep.Seconds)*time.Second + drainTime()
	if grace := time.Duration(pod.Grace) * time.Second; grace <= stopping {
		t.Errorf("the pod has %s to stop, the bridge takes up to %s", grace, stopping)
	}
	if s := bridge.Security; !s.NonRoot || s.User == 0 || !s.ReadOnly || s.Escalation == nil || *s.Escalation || !slices.Equal(s.Caps.Drop, []string{"ALL"}) {
		t.Errorf("the bridge may do too much: %+v", s)
	}
	for i := range args {
		if args[i] == "/etc/mcp-bridge/config/bridge.yaml" {
			args[i] = file
		}
	}
	replicasObey(t, args, redistest.Start(t))
}

func TestTheComposeFileOfReplicas(t *testing.T) {
	var file struct {
		Services map[string]struct {
			Command  []string `yaml:"command"`
			Grace    string   `yaml:"stop_grace_period"`
			User     string   `yaml:"user"`
			ReadOnly bool     `yaml:"read_only"`
			Drop     []string `yaml:"cap_drop"`
			Ports    []string `yaml:"ports"`
			Secrets  []string `yaml:"secrets"`
			Networks any      `yaml:"networks"`
		} `yaml:"services"`
		Configs map[string]struct {
			Content string `yaml:"content"`
		} `yaml:"configs"`
	}
	if err := yaml.Unmarshal([]byte(deployed(t, "compose-replicas.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	keeps(t, file.Services["redis"].Command)
	balancer := file.Configs["balancer"].Content
	if strings.Contains(balancer, "ip_hash") || strings.Contains(balancer, "hash ") || !strings.Contains(balancer, "proxy_buffering off;") {
		t.Errorf("the balancer has affinity or buffers streams: %s", balancer)
	}
	if ports := file.Services["balancer"].Ports; len(ports) != 1 || !strings.HasPrefix(ports[0], "127.0.0.1:") {
		t.Errorf("the balancer is open at %q", ports)
	}
	for _, name := range []string{"bridge-1", "bridge-2", "bridge-3"} {
		service := file.Services[name]
		cfg := settingsOf(t, service.Command, "")
		replicable(t, &cfg, "redis:6379")
		if cfg.Replica.Address != name+":8091" || !strings.Contains(balancer, "server "+name+":8080 max_fails=0;") {
			t.Errorf("%s is reached at %s", name, cfg.Replica.Address)
		}
		if at := fmt.Sprint(file.Services["balancer"].Networks); len(cfg.TrustedProxies) != 1 || !strings.Contains(at, "ipv4_address:"+cfg.TrustedProxies[0]) {
			t.Errorf("%s believes %q, the balancer is at %s", name, cfg.TrustedProxies, at)
		}
		if cfg.Store.Keys != "/run/secrets/keys" || !slices.Contains(service.Secrets, "keys") {
			t.Errorf("%s has no keys at %s", name, cfg.Store.Keys)
		}
		if grace, err := time.ParseDuration(service.Grace); err != nil || grace <= drainTime() {
			t.Errorf("%s has %q to stop", name, service.Grace)
		}
		if service.User == "" || strings.HasPrefix(service.User, "0") || !service.ReadOnly || !slices.Contains(service.Drop, "ALL") || len(service.Ports) > 0 {
			t.Errorf("%s may do too much: %+v", name, service)
		}
	}
	replicasObey(t, file.Services["bridge-1"].Command, redistest.Start(t))
}
