package main

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// TestExchangeMovesNoLine: stacks name places in the file that people read.
func TestExchangeMovesNoLine(t *testing.T) {
	source := "// Package p.\npackage p\n\nimport \"sync\"\n\ntype T struct {\n\tmu sync.Mutex // guards n\n\tn  int\n}\n"
	got, err := exchange([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.ParseFile(token.NewFileSet(), "p.go", got, 0); err != nil {
		t.Fatalf("%v in\n%s", err, got)
	}
	lines := strings.Split(string(got), "\n")
	if lines[6] != "\tmu lockorder.Mutex[lock_p_T] // guards n" {
		t.Errorf("line 7 is %q", lines[6])
	}
	if got, err := exchange([]byte("package p\n\n// no Mutex here\n")); got != nil || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}
