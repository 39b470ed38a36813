package main

import "testing"

func TestOnlyPatchesOfTheSameLineCount(t *testing.T) {
	used, ok := parse("v1.4.2")
	if !ok {
		t.Fatal("a release is none")
	}
	if got := newestPatch(used, []string{"v1.4.1", "v1.4.10", "v1.4.11-rc.1", "v1.5.0", "v2.4.99"}); got != 10 {
		t.Errorf("the newest patch is %d", got)
	}
	if _, ok := parse("v0.0.0-20260820222146-c27c302e5fc3"); ok {
		t.Error("a commit is a release")
	}
}
