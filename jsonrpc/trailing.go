package jsonrpc

import "regexp"

// trailing matches the last members of a message. Looking at the end alone is
// safe: what closes there is the message itself, a quotation mark inside a
// string would be escaped, and the value may have no escapes.
var trailing = regexp.MustCompile(`,\s*"id"\s*:\s*(-?\d+|"[^"\\]*")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)

// TrailingID finds the id of a message of which only the end is known, because
// it was too large to keep. It returns "" unless the id stands last, or before
// "jsonrpc" only: that is where the TypeScript SDK writes it.
func TrailingID(end []byte) ID {
	found := trailing.FindSubmatch(end)
	if found == nil {
		return ""
	}
	return newID(found[1])
}
