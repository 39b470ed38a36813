package negotiate

import "testing"

func TestWhoIsRelayed_A16(t *testing.T) {
	const plain, tasks = `{}`, `{"tasks":{"list":{}}}`
	modern := Verdict{Era: Modern, Versions: []string{"2026-07-28"}}
	dual := Verdict{Era: Dual, Versions: []string{"2026-07-28", "2025-11-25", "2025-06-18"}}
	old := Verdict{Era: Legacy, Versions: []string{"2025-06-18"}}
	draft := Verdict{Era: Legacy, Versions: []string{"DRAFT-2026-v1"}}
	silent := Verdict{Era: Legacy}
	down := Verdict{Era: Unknown}
	for _, tc := range []struct {
		name          string
		verdict       Verdict
		version, caps string
		want          [3]bool // auto, always, never
	}{
		{"modern server", modern, "2025-11-25", tasks, [3]bool{}},
		{"dual-era server", dual, "2025-11-25", plain, [3]bool{false, true, false}},
		{"dual-era server, client that hosts tasks", dual, "2025-11-25", tasks, [3]bool{true, true, false}},
		{"dual-era server, revision that it lacks", dual, "2024-11-05", tasks, [3]bool{}},
		{"dual-era server, no legacy revision", dual, "2026-07-28", tasks, [3]bool{}},
		{"legacy server", old, "2025-06-18", plain, [3]bool{true, true, false}},
		{"legacy server, revision that it lacks", old, "2024-11-05", plain, [3]bool{true, true, false}},
		{"server with a draft's handshake", draft, "2025-11-25", plain, [3]bool{}},
		{"server whose handshake fails", silent, "2025-11-25", plain, [3]bool{}},
		{"server that is down", down, "2025-11-25", plain, [3]bool{}},
	} {
		params := []byte(`{"protocolVersion":"` + tc.version + `","capabilities":` + tc.caps + `}`)
		for i, policy := range []RelayPolicy{RelayAuto, RelayAlways, RelayNever} {
			if got := tc.verdict.Relays(policy, params); got != tc.want[i] {
				t.Errorf("%s, policy %d: relayed %v", tc.name, policy, got)
			}
		}
	}
}
