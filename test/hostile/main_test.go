package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryTargetExists(t *testing.T) {
	for _, target := range targets {
		files, _ := filepath.Glob(filepath.Join("../..", target.pkg, "*_test.go"))
		found := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.Contains(string(text), "\nfunc "+target.name+"(f *testing.F)")
		}
		if !found {
			t.Errorf("%s has no %s", target.pkg, target.name)
		}
	}
}
