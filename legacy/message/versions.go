package message

import "github.com/mcpbridge/bridge/mcp"

// What the transports do differently by negotiated version. This file is the
// only place below legacy that compares versions (E.1).

// Priming reports whether a stream opens with an empty event that tells the
// client its first event id. Older clients take the empty data for a message
// and fail (E-7).
func Priming(v mcp.Version) bool { return v.AtLeast(mcp.V20251125) }

// Polls reports whether a stream may end before its response, and the client then
// comes back for that (E-8). It takes a priming event, after which it can.
func Polls(v mcp.Version) bool { return Priming(v) }

// Batches reports whether arrays of messages are allowed, over whichever transport (E-1, E-2):
// 2025-03-26 added them, and the next version took them out again.
func Batches(v mcp.Version) bool { return v == mcp.V20250326 }

// VersionHeader reports whether the version knows the MCP-Protocol-Version
// header; older sessions ignore it (E-10).
func VersionHeader(v mcp.Version) bool { return v.AtLeast(mcp.V20250618) }

// ErrorsWithoutID reports whether an error may answer a message whose id is
// unknown; older schemas demand an id in every error (E-32).
func ErrorsWithoutID(v mcp.Version) bool { return v.AtLeast(mcp.V20251125) }
