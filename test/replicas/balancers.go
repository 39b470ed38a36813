//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcpbridge/bridge/internal/testport"
)

// Both balancers take the replicas in turn, without affinity.

// balance starts a balancer in front of all replicas.
func (b *stand) balance(name string, write func(string) (string, []string, error)) error {
	address, err := testport.Free()
	if err != nil {
		return err
	}
	program, args, err := write(address)
	if err != nil {
		return err
	}
	p := b.process(name, program, address, args...)
	b.balances = append(b.balances, p)
	b.urls = append(b.urls, "http://"+address+"/mcp")
	return p.start()
}

func (b *stand) each(line func(i int, address string) string) string {
	var all strings.Builder
	for i, r := range b.bridges {
		all.WriteString(line(i, r.address) + "\n")
	}
	return all.String()
}

func (b *stand) nginx(address string) (string, []string, error) {
	program, err := find("nginx")
	if err != nil {
		return "", nil, err
	}
	file := filepath.Join(b.dir, "nginx.conf")
	servers := b.each(func(_ int, to string) string { return "    server " + to + " max_fails=0;" })
	return program, []string{"-c", file, "-e", "stderr"}, os.WriteFile(file, fmt.Appendf(nil, `
daemon off; worker_processes 1; pid %[1]s/nginx.pid; error_log stderr error;
events { worker_connections 4096; }
http {
  access_log off; proxy_temp_path %[1]s/proxy; client_body_temp_path %[1]s/body;
  fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  upstream bridges {
%[2]s    keepalive 16;
  }
  server {
    listen %[3]s;
    location / {
      proxy_pass http://bridges;
      proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;
      proxy_buffering off; proxy_read_timeout 1h; proxy_connect_timeout 2s;
    }
  }
}
`, b.dir, servers, address), 0o600)
}

func (b *stand) haproxy(address string) (string, []string, error) {
	program, err := find("haproxy")
	if err != nil {
		return "", nil, err
	}
	file := filepath.Join(b.dir, "haproxy.cfg")
	servers := b.each(func(i int, to string) string {
		return fmt.Sprintf("  server bridge%d %s check inter 500ms fall 2 rise 1", i, to)
	})
	return program, []string{"-db", "-q", "-f", file}, os.WriteFile(file, fmt.Appendf(nil, `
defaults
  mode http
  timeout connect 2s
  timeout client 1h
  timeout server 1h
  option redispatch 1
  retries 3
frontend all
  bind %s
  default_backend bridges
backend bridges
  balance roundrobin
  option httpchk GET /readyz
%s`, address, servers), 0o600)
}
