package redisstore

import (
	"errors"
	"strconv"
	"strings"
	"testing"
)

// follower is a framing that only follows.
func follower(messages *int) *framing {
	return &framing{
		began: func(byte) error { return nil }, whole: func(byte, int) error { *messages++; return nil }, said: func([]byte) error { return nil },
		patched: func() bool { return false }, value: func(byte, int, []byte) {},
	}
}

// follow scans text in parts of a size, and returns how many messages it has.
func follow(text string, size int) (messages int, err error) {
	f := follower(&messages)
	for len(text) > 0 && err == nil {
		part := text[:min(size, len(text))]
		_, err = f.scan([]byte(part))
		text = text[len(part):]
	}
	return messages, err
}

func TestAllFormsOfRepliesPass(t *testing.T) {
	for text, want := range map[string]int{
		"+OK\r\n-ERR no\r\n:-12\r\n$3\r\nabc\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n":  8, // RESP2
		"*3\r\n:1\r\n$3\r\na\nb\r\n*1\r\n+x\r\n":                                 1,
		"_\r\n#t\r\n,3.14\r\n(12345678901234567890123\r\n!5\r\nERR x\r\n":        5, // RESP3
		"=7\r\ntxt:abc\r\n~2\r\n+a\r\n+b\r\n%1\r\n+k\r\n*2\r\n:1\r\n_\r\n%0\r\n": 4,
		">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n+OK\r\n":                    2,
		">2\r\n$10\r\ninvalidate\r\n_\r\n":                                       1,
		"|1\r\n+ttl\r\n:12\r\n$1\r\na\r\n":                                       1, // an attribute, and what it is about
		"*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n|0\r\n:2\r\n":                             1,
		"$?\r\n;4\r\nabcd\r\n;1\r\ne\r\n;0\r\n+OK\r\n":                           2, // without a length
		"*?\r\n:1\r\n*?\r\n.\r\n+x\r\n.\r\n%?\r\n+k\r\n:1\r\n.\r\n~?\r\n.\r\n":   3,
		"*3\r\n$0\r\n\r\n$0000003\r\nabc\r\n$000000001\r\na\r\n":                 1,
		"$70\r\n" + strings.Repeat("x", 70) + "\r\n":                             1,
	} {
		for _, size := range []int{1, 2, 3, 7, 1 << 20} {
			if got, err := follow(text, size); got != want || err != nil {
				t.Errorf("%.60q in parts of %d: %d messages, %v", text, size, got, err)
			}
		}
	}
}

func TestWhatIsNoReplyEndsTheConnection(t *testing.T) {
	for _, text := range []string{
		"$-5\r\n", "$-2\r\n", "*-2\r\n", "%-1\r\n", "|-1\r\n", ">-1\r\n", "~-1\r\n", "=-1\r\n", "!-1\r\n", "$9223372036854775807\r\n", "*9223372036854775807\r\n",
		"%4611686018427387905\r\n", "*99999999999999999999999\r\n", "$67108929\r\n", "*1048577\r\n", "%524289\r\n", "*2\r\n*1048570\r\n:1\r\n*9\r\n" + strings.Repeat(":1\r\n", 1<<20),
		strings.Repeat("*1\r\n", 17), strings.Repeat("*?\r\n", 17), "$?\r\n;-1\r\n", "$?\r\n+OK\r\n", ";3\r\nabc\r\n", ".\r\n", "*1\r\n.\r\n", "=?\r\n", ">?\r\n", "|?\r\n",
		"$3\r\nabcde", "$3\r\nabc\n\n", "$x\r\n", "$\r\n", "$+3\r\n", "$-0x\r\n", ":1a\r\n", ":\r\n", "_x\r\n", "#\r\n", "+OK\n", "\r\n", "@1\r\n", "HTTP/1.1 400\r\n",
		"*1\r\n$3\r\nabcde", "*1\r\n$3\r\nabc\rx", "*1\r\n$67108929\r\n", "*1\r\n$:1\r\n", "*1\r\n$1x\r\na\r\n",
		"+" + strings.Repeat("x", mostLine+1), ">1\r\n:1\r\n", ">2\r\n*1\r\n+a\r\n",
	} {
		for _, size := range []int{1, 5, 1 << 20} {
			if _, err := follow(text, size); !errors.Is(err, errGarbled) {
				t.Errorf("%.60q in parts of %d: %v", text, size, err)
			}
		}
	}
}

// What comes before a fault passes, and nothing of the fault that the client could act upon.
func TestWhatPrecedesAFaultPasses(t *testing.T) {
	var messages int
	n, err := follower(&messages).scan([]byte("+OK\r\n$-5\r\n"))
	if n >= len("+OK\r\n$-5\r\n") || n < len("+OK\r\n") || !errors.Is(err, errGarbled) || messages != 1 {
		t.Errorf("%d bytes pass, %d messages, %v", n, messages, err)
	}
}

func FuzzFraming(f *testing.F) {
	for _, seed := range []string{"*2\r\n$1\r\na\r\n:1\r\n", "$?\r\n;1\r\na\r\n;0\r\n", "%?\r\n+k\r\n_\r\n.\r\n", ">2\r\n+a\r\n*0\r\n", "|1\r\n+a\r\n+b\r\n#t\r\n"} {
		f.Add(seed, 3)
	}
	f.Fuzz(func(t *testing.T, text string, size int) {
		whole, err := follow(text, len(text)+1)
		parts, err2 := follow(text, max(size, 1))
		if whole != parts || (err == nil) != (err2 == nil) {
			t.Errorf("%q: %d messages, %v; in parts of %d: %d, %v", text, whole, err, size, parts, err2)
		}
	})
}

func BenchmarkFraming(b *testing.B) {
	for name, text := range map[string]string{"OK": "+OK\r\n", "record": "$4000\r\n" + strings.Repeat("x", 4000) + "\r\n", "load": "*40\r\n" + strings.Repeat("$5\r\nabcde\r\n:"+strconv.Itoa(1)+"\r\n", 20)} {
		b.Run(name, func(b *testing.B) {
			messages := 0
			f, p := follower(&messages), []byte(text)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = f.scan(p)
			}
		})
	}
}
