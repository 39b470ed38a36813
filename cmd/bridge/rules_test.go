package main

import (
	"testing"

	"github.com/mcpbridge/bridge/config"
	"github.com/mcpbridge/bridge/translate"
)

// Q3, Q9, Q10, Q12: the switches of the translation reach it.
func TestSwitchesOfTheTranslation(t *testing.T) {
	byDefault := config.Default().Policy
	if got := rules(&byDefault); got.Profile != translate.Strict || got.DropNonObject || got.CancelMultiSelect || got.HostTasks {
		t.Errorf("by default %+v", got)
	}
	other := config.Policy{Profile: "minimal", NonObject: "drop", MultiSelect: "cancel", Tasks: "host"}
	if got := rules(&other); got.Profile != translate.Minimal || !got.DropNonObject || !got.CancelMultiSelect || !got.HostTasks {
		t.Errorf("switched %+v", got)
	}
}
