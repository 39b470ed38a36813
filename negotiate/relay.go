package negotiate

import (
	"slices"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// RelayPolicy says when legacy clients are handed to a server of their own era
// instead of being translated for.
type RelayPolicy int

const (
	// RelayAuto hands them to a server that speaks nothing newer, and to a
	// dual-era one when they want what only their own revision has.
	RelayAuto RelayPolicy = iota
	// RelayAlways hands them to any server that offers their revision.
	RelayAlways
	// RelayNever hands no one over.
	RelayNever
)

// LegacyServer reports whether the upstream proved, by a handshake, to be a
// server that legacy clients can use as it is and the bridge can not.
func (v *Verdict) LegacyServer() bool {
	return v.Era == Legacy && slices.ContainsFunc(v.Versions, isLegacy)
}

func isLegacy(v string) bool { return mcp.Version(v).IsLegacy() }

// Relays reports whether a client that initializes with these params is handed
// to the upstream. A server that speaks only legacy versions settles the version
// with the client itself.
func (v *Verdict) Relays(policy RelayPolicy, params []byte) bool {
	switch {
	case policy == RelayNever:
		return false
	case v.LegacyServer():
		return true
	case v.Era != Dual:
		return false
	}
	asked, _ := rawjson.Text(rawjson.Get(params, "protocolVersion"))
	offered := isLegacy(asked) && slices.Contains(v.Versions, asked)
	return offered && (policy == RelayAlways || untranslatable(params))
}

// untranslatable reports a client that offers what its revision alone has: tasks
// that it hosts for the server (A.5, J-14).
func untranslatable(params []byte) bool {
	return rawjson.KindOf(rawjson.Get(rawjson.Get(params, "capabilities"), "tasks")) == rawjson.Object
}

// Serves reports whether a server that settled on one version can serve a client that was
// told another: what is older is part of what came after it.
func Serves(told, settled mcp.Version) bool { return told.AtLeast(settled) }
