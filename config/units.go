package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes, written like 4MiB.
type Size int64

// units are the suffixes of a size, larger before smaller so that String finds
// the largest one that fits. The decimal ones are only read, never written.
var units = []struct {
	name  string
	bytes int64
	write bool
}{
	{"GiB", 1 << 30, true},
	{"MiB", 1 << 20, true},
	{"KiB", 1 << 10, true},
	{"GB", 1e9, false},
	{"MB", 1e6, false},
	{"KB", 1e3, false},
	{"B", 1, true},
}

// String writes the size in the largest binary unit that needs no fraction.
func (s Size) String() string {
	for _, u := range units {
		if u.write && int64(s)%u.bytes == 0 && (s != 0 || u.bytes == 1) {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// ParseSize reads a whole number with a unit, in any case: 512B, 64KiB, 4 MiB, 1GB.
func ParseSize(text string) (Size, error) {
	for _, u := range units {
		digits, ok := cutSuffixFold(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/u.bytes {
			break
		}
		return Size(n * u.bytes), nil
	}
	return 0, fmt.Errorf("is no size; write a whole number and a unit, like 64KiB or 4MiB")
}

// SizeOrOff is a Size of which zero is written off.
type SizeOrOff int64

const off = "off"

// String writes the size as Size does, or off.
func (s SizeOrOff) String() string {
	if s == 0 {
		return off
	}
	return Size(s).String()
}

// parseSizeOrOff reads a size, or off or 0.
func parseSizeOrOff(text string) (SizeOrOff, error) {
	if text == off || text == "0" {
		return 0, nil
	}
	size, err := ParseSize(text)
	if err != nil {
		err = fmt.Errorf("is no size; write a whole number and a unit, like 32MiB, or off")
	}
	return SizeOrOff(size), err
}

func cutSuffixFold(text, suffix string) (string, bool) {
	at := len(text) - len(suffix)
	if at < 0 || !strings.EqualFold(text[at:], suffix) {
		return text, false
	}
	return text[:at], true
}

// parseDuration reads a duration like 90s, 10m or 1h30m.
func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		return 0, fmt.Errorf("is no duration; write a number and a unit, like 500ms, 90s, 10m or 2h")
	}
	return d, nil
}

// formatDuration writes d like time.Duration does, without the zero units at
// the end: 2m, not 2m0s.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
