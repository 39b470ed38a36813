package vouch

import (
	"strings"
	"testing"
	"testing/iotest"
)

// reads has a Reply read a response in pieces of one byte, and at once.
func reads(t *testing.T, events bool, text string) (result bool) {
	t.Helper()
	whole := NewReply(events).Read([]byte(text))
	r, one, times := NewReply(events), make([]byte, 8), 0
	for pieces := iotest.OneByteReader(strings.NewReader(text)); ; {
		n, err := pieces.Read(one)
		if r.Read(one[:n]) {
			times++
		}
		if err != nil {
			break
		}
	}
	if times > 1 || (times == 1) != whole {
		t.Errorf("%q: at once %v, byte by byte %d times", text, whole, times)
	}
	return whole
}

func TestOnlyAResultIsOne(t *testing.T) {
	for text, want := range map[string]bool{
		`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`:                 true,
		"\r\n { \"result\" : { } , \"id\":\"a\"}\n":                        true,
		`{"id":1,"result":{"error":1,"x":[{"method":"}"}],"y":"\"}"}}`:     true,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"bad"}}`: false,
		`{"id":1,"error":{"data":{"result":{}}}}`:                          false,
		`{"id":1,"result":{},"error":{"code":1}}`:                          false,
		`{"id":1,"error":{"code":1},"result":{}}`:                          false,
		`{"id":1,"result":{},"\u0065rror":{"code":1}}`:                     false,
		`{"id":1,"result":{},"result":{}}`:                                 false,
		`{"id":1,"method":"x","result":{}}`:                                false,
		`{"id":1,"x":"result","results":{},"resultresult":1}`:              false,
		`{"id":1,"result":{}`:                                              false,
		`[{"id":1,"result":{}}]`:                                           false,
		`"result"`:                                                         false,
		"":                                                                 false,
		"\x1f\x8b\x08{\"result\":1}":                                       false,
	} {
		if got := reads(t, false, text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestTheFirstResponseOfAStreamDecides(t *testing.T) {
	const result, fault, note = `{"id":1,"result":{}}`, `{"id":1,"error":{"code":1}}`, `{"method":"notifications/progress","params":{"result":1}}`
	for text, want := range map[string]bool{
		"data: " + result + "\n\n":    true,
		"data:" + result + "\r\n\r\n": true,
		"data:" + result + "\r\r":     true,
		": hello\n\nid: 1\nevent: message\ndata: " + note + "\n\nid: 2\ndata: " + result + "\nretry: 3\n\n": true,
		"data: {\"id\":1,\ndata: \"result\":\ndata\ndata: {}}\n\n":                                          true,
		"data: " + fault + "\n\ndata: " + result + "\n\n":                                                   false,
		"data: " + note + "\n\ndata: " + fault + "\n\n":                                                     false,
		"data: " + note + "\n\n":                                                   false,
		"data: " + result + "\n":                                                   false, // it never ends
		"data: " + result + "\ndata: " + result + "\n\n":                           false,
		"dat: " + result + "\n\n" + "datas: " + result + "\n\n:" + result + "\n\n": false,
	} {
		if got := reads(t, true, text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestReadingAReplyTakesNoMemory(t *testing.T) {
	text := []byte(`{"id":1,"x":"` + strings.Repeat("y", 4<<10) + `","result":{}}`)
	r := NewReply(false)
	if n := testing.AllocsPerRun(10, func() { r.Read(text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
