package tasks

import (
	"errors"
	"strconv"
	"time"

	"github.com/mcpbridge/bridge/rawjson"
)

// Errors of a wish for a task that is none.
var (
	errWish = errors.New("task must be an object")
	errTTL  = errors.New("task.ttl must be a number of milliseconds that is not negative")
)

// Check says what is wrong with what a client asks for.
func Check(wish []byte) error {
	if rawjson.KindOf(wish) != rawjson.Object {
		return errWish
	}
	if ttl := rawjson.Get(wish, "ttl"); ttl != nil && rawjson.KindOf(ttl) != rawjson.Null {
		if _, ok := milliseconds(ttl); !ok {
			return errTTL
		}
	}
	return nil
}

// ttlOf returns how long a task is kept: as its client asks for, and no longer than is allowed.
func ttlOf(raw []byte) time.Duration {
	ms, ok := milliseconds(raw)
	if !ok || ms > float64(maxTTL.Milliseconds()) {
		return maxTTL
	}
	return time.Duration(ms) * time.Millisecond
}

func milliseconds(raw []byte) (ms float64, ok bool) {
	if rawjson.KindOf(raw) != rawjson.Number {
		return 0, false
	}
	ms, err := strconv.ParseFloat(string(raw), 64)
	return ms, (err == nil || errors.Is(err, strconv.ErrRange)) && ms >= 0
}
