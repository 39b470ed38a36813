package rawjson

// numberEnd returns the index after the number that starts at i, or i when
// there is no number of RFC 8259 in that place.
func numberEnd(b []byte, i int) int {
	start := i
	if i < len(b) && b[i] == '-' {
		i++
	}
	whole := digitsEnd(b, i)
	if whole == i || b[i] == '0' && whole > i+1 {
		return start
	}
	i = whole
	if i < len(b) && b[i] == '.' {
		fraction := digitsEnd(b, i+1)
		if fraction == i+1 {
			return start
		}
		i = fraction
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		exponent := digitsEnd(b, i)
		if exponent == i {
			return start
		}
		i = exponent
	}
	return i
}

func digitsEnd(b []byte, i int) int {
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i
}

// Int returns the value of v and true when v is an integer literal, without
// fraction and exponent, that fits.
func Int(v []byte) (int64, bool) {
	i := skipSpace(v, 0)
	end := End(v, i)
	v = v[i:end]
	negative := len(v) > 0 && v[0] == '-'
	if negative {
		v = v[1:]
	}
	if len(v) == 0 || len(v) > 19 || v[0] == '0' && len(v) > 1 {
		return 0, false
	}
	var n uint64
	for _, c := range v {
		if c -= '0'; c > 9 {
			return 0, false
		}
		n = n*10 + uint64(c)
	}
	if negative {
		return -int64(n), n <= 1<<63
	}
	return int64(n), n < 1<<63
}
