//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/mcpbridge/bridge/internal/testport"
)

// throughNginx runs the nginx of the compose file in front of a bridge, and returns its address.
func throughNginx(t *testing.T, bridge string) string {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("LEFT OUT: nginx is not installed, so nobody has tried what deploy/compose-replicas.yaml says to it")
	}
	var file struct {
		Configs map[string]struct {
			Content string `yaml:"content"`
		} `yaml:"configs"`
	}
	if err := yaml.Unmarshal([]byte(deployed(t, "compose-replicas.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	address, err := testport.Free()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text := strings.NewReplacer("$$", "$", "listen 8080", "listen "+address,
		"server bridge-1:8080 max_fails=0;", "server "+bridge+";", "server bridge-2:8080 max_fails=0;", "", "server bridge-3:8080 max_fails=0;", "",
		"worker_processes auto;", "worker_processes 1; daemon off; pid "+dir+"/pid;",
		"http {\n", fmt.Sprintf("http {\n access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;\n", dir),
	).Replace(file.Configs["balancer"].Content)
	config := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	said := &lines{grown: make(chan struct{}, 1)}
	nginx := exec.CommandContext(ctx, program, "-c", config, "-e", "stderr")
	nginx.Stderr = said
	nginx.Cancel = func() error { return nginx.Process.Signal(syscall.SIGTERM) }
	if err := nginx.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = nginx.Wait(); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	for until := time.Now().Add(patience); ; {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			return address
		}
		select {
		case <-ended:
			t.Fatalf("nginx ended: %s", said)
		default:
		}
		if time.Now().After(until) {
			t.Fatalf("nginx does not listen: %s", said)
		}
	}
}

// What clients send and ask for reaches the bridge through the balancer as it would without, and the bridge knows
// whose it is.
func TestTheComposeFilesBalancerPassesWhatClientsNeed(t *testing.T) {
	r := startWithFile(t, "listen: 127.0.0.1:0\nupstream: '"+named(t, "one")+"'\ntrusted-proxies: [127.0.0.1]\nlog: {level: debug}\n")
	address := throughNginx(t, r.address)

	body := `{"jsonrpc":"2.0","id":"q","result":{"text":"` + strings.Repeat("z", 1_500_000) + `"}}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("X-Forwarded-For", "192.0.2.1")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode == http.StatusRequestEntityTooLarge || strings.Contains(string(text), "nginx") {
		t.Errorf("an answer of 1.5 MB gets %s: %.200s", resp.Status, text)
	}
	if log := r.errors.String(); strings.Contains(log, "192.0.2.1") || !strings.Contains(log, `"remote":"127.0.0.1`) {
		t.Errorf("the client's address is not what nginx says:\n%s", log)
	}

	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(conn, "GET /mcp HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", address)
	if line, _ := bufio.NewReader(conn).ReadString('\n'); !strings.Contains(line, " 101 ") {
		t.Errorf("a WebSocket gets %q", line)
	}

	// More streams than nginx would carry by itself: 512 connections.
	for i := range 300 {
		session := r.session("/mcp")
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		fmt.Fprintf(conn, "GET /mcp HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\nMcp-Session-Id: %s\r\nMCP-Protocol-Version: 2025-11-25\r\n\r\n", address, session)
		if line, _ := bufio.NewReader(conn).ReadString('\n'); !strings.Contains(line, " 200 ") {
			t.Fatalf("stream %d gets %q", i, line)
		}
	}
}
