// Package load drives an MCP endpoint the way legacy clients do and counts
// what came of it: in a closed loop, at a fixed rate without coordinated
// omission, with many suspended calls held open, and with many idle sessions.
// It owns pacing, counting and the shape of the traffic; the wire is package
// client's and the process under test is package proc's.
package load

import (
	"fmt"
	"sync/atomic"

	"github.com/mcpbridge/bridge/bench/client"
	"github.com/mcpbridge/bridge/bench/stub"
)

// Kind is a kind of traffic.
type Kind string

// The kinds of traffic that are compared.
const (
	Plain    Kind = "plain"    // a call with a small JSON result
	Question Kind = "question" // a call with one elicitation
	Rounds   Kind = "rounds"   // a call with three elicitations, one after the other
	Progress Kind = "progress" // an SSE response with ten progress notifications
	Big      Kind = "big"      // a call with a result of 64 KiB
	Whole    Kind = "whole"    // initialize, initialized, tools/list, call, DELETE
)

// Kinds lists them in the order of the table.
var Kinds = []Kind{Plain, Question, Rounds, Progress, Big, Whole}

// tool returns the tool that a kind of traffic calls.
func (k Kind) tool() string {
	switch k {
	case Question:
		return stub.Ask
	case Rounds:
		return stub.Ask3
	case Progress:
		return stub.Steps
	case Big:
		return stub.Big
	}
	return stub.Echo
}

// Errors counts failures and keeps the first one's text.
type Errors struct {
	n     atomic.Int64
	first atomic.Pointer[error]
}

// Add counts err unless it is nil.
func (e *Errors) Add(err error) {
	if err != nil {
		e.n.Add(1)
		e.first.CompareAndSwap(nil, &err)
	}
}

// Count returns the number of failures.
func (e *Errors) Count() int64 { return e.n.Load() }

// First returns the first failure, or nil.
func (e *Errors) First() error {
	if p := e.first.Load(); p != nil {
		return *p
	}
	return nil
}

var nonces atomic.Int64

// nonce returns a text that no other call of this process uses.
func nonce() string { return fmt.Sprintf("%012x", nonces.Add(1)) }

// user is one simulated client: two connections and one or more sessions that
// take turns on them.
type user struct {
	main, side *client.Conn
	sessions   []*client.Session
	addr       string
}

func newUser(addr string, sessions int) (*user, error) {
	u := &user{main: client.NewConn(addr, 4096), side: client.NewConn(addr, 4096), addr: addr}
	for range sessions {
		s := client.NewSession(addr, u.main, u.side)
		if err := s.Open(); err != nil {
			return u, err
		}
		u.sessions = append(u.sessions, s)
	}
	return u, nil
}

// leave deletes the sessions and closes the connections.
func (u *user) leave(errs *Errors) {
	for _, s := range u.sessions {
		errs.Add(s.Close())
	}
	u.main.Close()
	u.side.Close()
}

// whole is one session from handshake to DELETE.
func (u *user) whole() error {
	s := client.NewSession(u.addr, u.main, u.side)
	if err := s.Open(); err != nil {
		return err
	}
	if err := s.List(); err != nil {
		return err
	}
	if err := s.Call(stub.Echo, nonce()); err != nil {
		return err
	}
	return s.Close()
}
