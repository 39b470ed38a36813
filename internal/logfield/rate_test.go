package logfield

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

// TestNoKindOfLineFillsTheLog: at no level, and without whoever writes it taking care.
func TestNoKindOfLineFillsTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := Rated(zerolog.New(&out))
		room := log.With().Str("room", "one").Logger()
		for n := range 1000 {
			room.Debug().Int("n", n).Msg("dropped")
			log.Error().Int("n", n).Msg("not kept")
		}
		log.Debug().Msg("something else")
		lines(t, &out, map[string]int{"dropped": 20, "not kept": 20, "something else": 1})
		time.Sleep(time.Minute)
		log.Debug().Msg("dropped")
		lines(t, &out, map[string]int{"dropped": 1})
	})
}

func TestLinesWithRatesOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := Rated(zerolog.New(&out))
		some, mount := AtMost(100, log), Apart(log.With().Str("path", "/a").Logger())
		for range 1000 {
			log.Warn().Msg("lost")
			some.Warn().Msg("failed")
			mount.Warn().Msg("lost at the mount")
			Each(log.Warn()).Msg("asked for")
		}
		log.Warn().Msg("lost at the mount")
		lines(t, &out, map[string]int{"lost": 20, "failed": 100, "lost at the mount": 21, "asked for": 1000})
	})
}

// A text that is never the same is a mistake, which must cost neither the disk nor memory.
func TestLinesThatAreNeverTheSameAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := Rated(zerolog.New(&out))
		for n := range 10_000 {
			log.Info().Msg(fmt.Sprint("line ", n))
		}
		if n := strings.Count(out.String(), "\n"); n != mostKinds+perMinute {
			t.Errorf("%d lines", n)
		}
	})
}

// A program that embeds the bridge may have hooks, and a context for them.
func TestALoggerKeepsItsContext(t *testing.T) {
	type key struct{}
	var seen []any
	theirs := zerolog.New(io.Discard).Hook(zerolog.HookFunc(func(e *zerolog.Event, _ zerolog.Level, _ string) {
		seen = append(seen, e.GetCtx().Value(key{}))
	})).With().Ctx(context.WithValue(t.Context(), key{}, "theirs")).Logger()
	log := Rated(theirs)
	log.Info().Msg("a line")
	Each(log.Info()).Msg("a line")
	some := Apart(AtMost(1, log))
	some.Info().Msg("a line")
	if !slices.Equal(seen, []any{"theirs", "theirs", "theirs"}) {
		t.Errorf("their hook sees %v", seen)
	}
}

func TestASilentLoggerStaysSilent(t *testing.T) {
	log := Rated(zerolog.Logger{})
	log.Error().Msg("to nobody")
	some := AtMost(1, log)
	some.Error().Msg("to nobody")
}

// lines holds how many lines there are of each text, and forgets them.
func lines(t *testing.T, out *bytes.Buffer, want map[string]int) {
	t.Helper()
	for text, n := range want {
		if got := strings.Count(out.String(), `"message":"`+text+`"`); got != n {
			t.Errorf("%q: %d lines, want %d", text, got, n)
		}
	}
	out.Reset()
}
