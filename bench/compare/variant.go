package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/mcpbridge/bridge/bench/proc"
)

// hops says which hops are encrypted, for every system alike.
type hops struct{ downstream, upstream bool }

func (h *hops) set(text string) error {
	switch text {
	case "downstream":
		h.downstream = true
	case "upstream":
		h.upstream = true
	case "both":
		*h = hops{true, true}
	default:
		return fmt.Errorf("%q is no hop; use downstream, upstream or both", text)
	}
	return nil
}

// origin is where a server is reached by those in front of it.
func (h hops) origin(server *proc.Process) string {
	if h.upstream {
		return "https://" + server.Secure
	}
	return "http://" + server.Addr
}

// bridgeFlags have a bridge speak TLS with the certificate in dir.
func (h hops) bridgeFlags(dir string) (flags []string) {
	cert, key := certificate(dir)
	if h.downstream {
		flags = append(flags, "--tls.cert", cert, "--tls.key", key)
	}
	if h.upstream {
		flags = append(flags, "--upstream-tls.ca-only", cert)
	}
	return flags
}

// certificate names the files that testcert.Make wrote into dir.
func certificate(dir string) (cert, key string) {
	return filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
}

// variant is a bridge with other settings, or another program, that is measured in
// the same rounds.
type variant struct {
	name    string
	program string // "": the one that was built
	flags   []string
}

func (o *options) addBeside(text string) error {
	name, flags, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return errors.New("write NAME=FLAGS or NAME@PROGRAM=FLAGS")
	}
	v := variant{flags: strings.Fields(flags)}
	v.name, v.program, _ = strings.Cut(name, "@")
	o.beside = append(o.beside, v)
	return nil
}
