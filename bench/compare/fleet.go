package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"

	"github.com/mcpbridge/bridge/bench/client"
	"github.com/mcpbridge/bridge/bench/proc"
	"github.com/mcpbridge/bridge/bench/report"
	"github.com/mcpbridge/bridge/bench/stub"
)

// fleet is every process of a run.
type fleet struct {
	self     string
	program  string // the bridge as users run it
	open     string // the bridge with a control endpoint
	profiled bool   // whether the open one is measured everywhere
	dir      string // where both were built; removed at the end
	tools    int
	flags    []string // more flags for the bridge
	tls      hops
	beside   []variant
	modern   *proc.Process
	legacy   *proc.Process
	systems  []*system
}

// system is one thing that is compared: the process under test and the server
// that stands behind it, which for the direct system are the same.
type system struct {
	name   string
	under  *proc.Process
	server *proc.Process
	addr   string // of under, for clients
}

func newFleet(o *options) (f *fleet, err error) {
	f = &fleet{program: o.bridge, flags: o.flags, profiled: o.open, tls: o.tls, beside: o.beside}
	defer func() {
		if err != nil {
			f.stop()
		}
	}()
	if f.self, err = proc.Self(); err != nil {
		return f, err
	}
	if err = f.build(); err != nil {
		return f, err
	}
	return f, f.restart(o.tools)
}

// restart starts everything afresh, with servers that offer n tools.
func (f *fleet) restart(tools int) (err error) {
	f.stopSystems()
	f.stopServers()
	f.tools = tools
	if f.modern, err = f.role(roleModern, ""); err != nil {
		return err
	}
	if f.legacy, err = f.role(roleLegacy, ""); err != nil {
		return err
	}
	return f.startSystems(f.profiled)
}

// startSystems starts a fresh process of every system, so that one mode's
// leftovers are not the next one's memory. open: the bridge with its control
// endpoint; the others have theirs in any case.
func (f *fleet) startSystems(open bool) error {
	f.stopSystems()
	f.add(report.Direct, f.legacy, f.legacy)
	p, err := f.role(roleProxy, f.tls.origin(f.legacy))
	if err != nil {
		return err
	}
	f.add(report.Proxy, p, f.legacy)
	for _, v := range append([]variant{{name: report.Bridge}}, f.beside...) {
		if p, err = f.startBridge(open, &v); err != nil {
			return err
		}
		f.add(v.name, p, f.modern)
	}
	return nil
}

// add notes a system that was started.
func (f *fleet) add(name string, under, server *proc.Process) {
	addr := under.Addr
	if f.tls.downstream {
		addr = client.TLS + under.Secure
	}
	f.systems = append(f.systems, &system{name: name, under: under, server: server, addr: addr})
}

func (f *fleet) role(name, server string) (*proc.Process, error) {
	args := []string{"role", name, "-tools", strconv.Itoa(f.tools)}
	if server != "" {
		args = append(args, "-upstream", server)
	}
	if f.tls != (hops{}) {
		args = append(args, "-certs", f.dir)
	}
	return proc.Start(name, f.self, args...)
}

func (f *fleet) stopSystems() {
	for _, s := range f.systems {
		if s.under != s.server {
			s.under.Stop()
		}
	}
	f.systems = nil
}

func (f *fleet) stopServers() {
	for _, p := range []*proc.Process{f.modern, f.legacy} {
		if p != nil {
			p.Stop()
		}
	}
	f.modern, f.legacy = nil, nil
}

func (f *fleet) stop() {
	f.stopSystems()
	f.stopServers()
	if f.dir != "" {
		_ = os.RemoveAll(f.dir)
	}
}

// stats asks a server what it saw.
func stats(p *proc.Process) (stub.Stats, error) {
	var s stub.Stats
	resp, err := http.Get("http://" + p.Addr + stub.PathStats)
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	return s, json.NewDecoder(resp.Body).Decode(&s)
}

// checkFleet records what the servers complain about and who died. Only the
// modern server's complaints are the bridge's fault; the legacy one's come
// from calls that ReverseProxy broke off.
func (c *comparison) checkFleet(mode string) {
	s, err := stats(c.fleet.modern)
	switch {
	case err != nil:
		c.report.Errors = append(c.report.Errors, fmt.Sprintf("%s: modern server: %v", mode, err))
	case s.Violations > 0:
		c.report.Errors = append(c.report.Errors, fmt.Sprintf("%s: the modern server refused %d requests, the first: %s", mode, s.Violations, s.FirstViolation))
	}
	for _, sys := range c.fleet.systems {
		if !sys.under.Alive() {
			c.report.Errors = append(c.report.Errors, fmt.Sprintf("%s: %s ended: %s", mode, sys.name, sys.under.Log()))
		}
	}
}
