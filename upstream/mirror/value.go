package mirror

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/mcpbridge/bridge/internal/http1"
	"github.com/mcpbridge/bridge/rawjson"
)

const (
	sentinelPrefix = "=?base64?"
	sentinelSuffix = "?="

	// maxDigits bounds the decimal text of an integer argument: exponents such
	// as 1e999999999 must not be written out (B-16).
	maxDigits = 400
)

// AppendValue appends text as a header value, in the Base64 form of B-14 where
// plain text would be unsafe or ambiguous.
func AppendValue[T string | []byte](dst []byte, text T) []byte {
	if Plain(text) {
		return append(dst, text...)
	}
	readable := rawjson.Readable(string(text)) // what is encoded is UTF-8
	dst = base64.StdEncoding.AppendEncode(append(dst, sentinelPrefix...), []byte(readable))
	return append(dst, sentinelSuffix...)
}

// Plain reports whether text may stand in a header as it is (B-14). net/http
// would let bytes from 0x80 pass, so the test is our own (B-18).
func Plain[T string | []byte](text T) bool {
	if len(text) == 0 {
		return true
	}
	for i := range len(text) {
		if text[i] < 0x20 || text[i] > 0x7e {
			return false
		}
	}
	if text[0] == ' ' || text[len(text)-1] == ' ' {
		return false
	}
	return !looksEncoded(text)
}

// looksEncoded reports whether text would be taken for the Base64 form.
func looksEncoded[T string | []byte](text T) bool {
	const p, s = len(sentinelPrefix), len(sentinelSuffix)
	n := len(text)
	return n >= p && string(text[:p]) == sentinelPrefix && string(text[n-s:]) == sentinelSuffix
}

// LegalRaw reports whether the bytes of text are legal in a header value at
// all. Servers that compare Mcp-Name without decoding it need such text raw.
func LegalRaw[T string | []byte](text T) bool {
	n := len(text)
	return n > 0 && !blank(text[0]) && !blank(text[n-1]) && http1.IsValue(text)
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

// argumentText converts a primitive argument to header text (B-12), whichever of the primitive types its
// schema names. It reports false for null and for values that make no header (B-13, B-17).
func argumentText(v []byte) (string, bool) {
	switch rawjson.KindOf(v) {
	case rawjson.String:
		return rawjson.Text(v)
	case rawjson.True:
		return "true", true
	case rawjson.False:
		return "false", true
	case rawjson.Number:
		return integerText(string(v))
	}
	return "", false
}

// integerText returns the plain decimal text of a JSON number literal that has
// an integer value, exactly and whatever its size (B-12, B-16): 42.0 and 4.2e1
// become 42. It reports false for fractions and for absurd exponents.
func integerText(lit string) (string, bool) {
	sign := ""
	if strings.HasPrefix(lit, "-") {
		sign, lit = "-", lit[1:]
	}
	mantissa, exponent := lit, 0
	if i := strings.IndexAny(lit, "eE"); i >= 0 {
		mantissa = lit[:i]
		n, err := strconv.Atoi(lit[i+1:])
		if strings.Trim(mantissa, "0.") == "" {
			return "0", true // whatever the exponent
		}
		if err != nil || n > maxDigits || n < -maxDigits {
			return "", false
		}
		exponent = n
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits, ok := shift(whole, fraction, exponent)
	if digits == "0" {
		sign = ""
	}
	return sign + digits, ok
}

// shift moves the point between whole and fraction right by exponent places
// and reports whether nothing but zeros remains behind it.
func shift(whole, fraction string, exponent int) (string, bool) {
	digits, point := whole+fraction, len(whole)+exponent
	if len(digits) > maxDigits || point > maxDigits {
		return "", false
	}
	if point < 0 {
		digits, point = strings.Repeat("0", -point)+digits, 0
	}
	if point > len(digits) {
		digits += strings.Repeat("0", point-len(digits))
	}
	if strings.Trim(digits[point:], "0") != "" {
		return "", false
	}
	digits = strings.TrimLeft(digits[:point], "0")
	if digits == "" {
		digits = "0"
	}
	return digits, true
}
