//go:build race

package mcpbridge_test

const raceEnabled = true
