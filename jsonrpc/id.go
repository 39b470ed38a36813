package jsonrpc

import "github.com/mcpbridge/bridge/rawjson"

// isID reports whether the valid JSON value v is a string or an integer.
func isID(v []byte) bool {
	switch rawjson.KindOf(v) {
	case rawjson.String:
		return true
	case rawjson.Number:
		return isInteger(v)
	}
	return false
}

// isInteger accepts integers of any size: an id is kept as text.
func isInteger(v []byte) bool {
	for _, c := range v {
		if c != '-' && c-'0' > 9 {
			return false
		}
	}
	return true
}

// newID returns the token as an ID. Integers up to three digits, which most
// clients count through, need no memory.
func newID(token []byte) ID {
	if len(token) > 3 || token[0]-'0' > 9 {
		return ID(token)
	}
	n := 0
	for _, c := range token {
		n = n*10 + int(c-'0')
	}
	return ID(smallInts[3*n+3-len(token) : 3*n+3])
}

// smallInts is "000001002…999".
var smallInts = func() string {
	b := make([]byte, 0, 3000)
	for n := range 1000 {
		b = append(b, byte('0'+n/100), byte('0'+n/10%10), byte('0'+n%10))
	}
	return string(b)
}()

// recoverID finds the id of a text that was refused, so that the sender can be
// told which request failed. It takes only an id that was read completely and is
// not contradicted by a second one.
func recoverID(b []byte) ID {
	var id []byte
	for name, value := range rawjson.Members(b) {
		if string(name) != "id" {
			continue
		}
		if id != nil && string(id) != string(value) {
			return ""
		}
		id = value
	}
	if len(id) == 0 || rawjson.Validate(id) != nil || !isID(id) {
		return ""
	}
	if isInteger(id) && &b[len(b)-1] == &id[len(id)-1] { // it may lack digits
		return ""
	}
	return newID(id)
}
