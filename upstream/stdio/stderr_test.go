package stdio

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

func TestStderrDoesNotFillTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		var log bytes.Buffer
		done := make(chan struct{})
		go func() { relayStderr(in, stderrLog{log: zerolog.New(&log)}); close(done) }()
		flood := func(last string) {
			for range 20_000 {
				fmt.Fprintln(out, strings.Repeat("e", 200))
			}
			fmt.Fprintln(out, last)
			synctest.Wait()
		}
		flood("first last words")
		if n := log.Len(); n < stderrPerMinute/2 || n > stderrPerMinute {
			t.Errorf("%d bytes were logged in the first minute", n)
		}
		log.Reset()
		time.Sleep(time.Minute + time.Second)
		flood("second last words")
		out.Close()
		<-done
		for _, want := range []string{`"stderr":"first last words"`, `"lines":`, `"stderr":"second last words"`} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log lacks %s", want)
			}
		}
	})
}
