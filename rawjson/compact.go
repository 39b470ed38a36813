package rawjson

// Compact appends v to dst without the whitespace between its tokens, which
// leaves no line break: a JSON string cannot hold a raw one.
func Compact(dst, v []byte) []byte {
	start := 0
	for i := 0; i < len(v); {
		switch c := v[i]; {
		case c == '"':
			if i = skipString(v, i); i < 0 {
				return append(dst, v[start:]...)
			}
		case c == ' ' || c == '\n' || c == '\r' || c == '\t':
			dst = append(dst, v[start:i]...)
			i = skipSpace(v, i)
			start = i
		default:
			i++
		}
	}
	return append(dst, v[start:]...)
}
