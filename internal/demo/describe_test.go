package demo

import (
	"strings"
	"testing"

	"github.com/mcpbridge/bridge/internal/wirelog"
)

func TestEachMessageIsOneShortLine(t *testing.T) {
	d := &describer{methods: map[int]string{}}
	for _, c := range []struct {
		entry wirelog.Entry
		want  string // head and details; empty: not shown
	}{
		{wirelog.Entry{Exchange: 1, Kind: wirelog.Request, Data: []byte(`{"id":1,"method":"tools/list"}`)}, "tools/list"},
		{wirelog.Entry{Exchange: 1, Kind: wirelog.Body, Data: []byte(`{"id":1,"result":{"tools":[{"name":"a"},{"name":"b"}]}}`)}, "2 tools"},
		{wirelog.Entry{Exchange: 2, Kind: wirelog.Request, Data: []byte(`{"id":2,"method":"resources/read","params":{"uri":"file:///x"}}`)}, "resources/read file:///x"},
		{wirelog.Entry{Exchange: 2, Kind: wirelog.Event, Data: []byte(`{"method":"notifications/progress","params":{"progress":1,"total":4}}`)}, "notifications/progress 1/4"},
		{wirelog.Entry{Exchange: 2, Kind: wirelog.Body, Data: []byte(`{"id":2,"error":{"code":-32002,"message":"no\u001b[31m such file"}}`)}, "error -32002 no [31m such file"},
		{wirelog.Entry{Exchange: 3, Kind: wirelog.Request, Data: []byte(`{"method":"notifications/initialized"}`)}, ""},
		{wirelog.Entry{Exchange: 4, Kind: wirelog.Request, Data: []byte(`{"id":4,"method":"subscriptions/listen"}`)}, ""},
		{wirelog.Entry{Exchange: 4, Kind: wirelog.Event, Data: []byte(`{"id":4,"result":{}}`)}, ""},
		{wirelog.Entry{Exchange: 5, Kind: wirelog.Request, Method: "DELETE"}, "DELETE: session ends"},
		{wirelog.Entry{Exchange: 6, Kind: wirelog.Request, Data: []byte(`{"id":5,"method":"tools/call","params":{"name":"x","requestState":"secret!!"}}`)},
			"tools/call x (retry) + requestState •••• 8 bytes"},
		{wirelog.Entry{Exchange: 6, Kind: wirelog.Abandoned}, "closes the stream: cancelled"},
		{wirelog.Entry{Exchange: 7, Kind: wirelog.Priming}, ""},
		{wirelog.Entry{Exchange: 8, Kind: wirelog.Body, Data: []byte(`not JSON`)}, ""},
	} {
		l, ok := d.describe(c.entry)
		got := strings.TrimSpace(strings.Join(append([]string{l.head}, l.details...), " "))
		if !ok {
			got = ""
		}
		if strings.Join(strings.Fields(got), " ") != c.want {
			t.Errorf("%s\ngot  %q\nwant %q", c.entry.Data, got, c.want)
		}
	}
}

func TestMessagesWaitForAnOpenQuestion(t *testing.T) {
	var out strings.Builder
	s := &screen{out: &out}
	s.hold()
	s.show(line{head: "late"})
	if out.Len() > 0 {
		t.Errorf("a message broke into a question: %s", out.String())
	}
	s.release()
	if !strings.Contains(out.String(), "late") {
		t.Error("the message was lost")
	}
}

func TestWrapKeepsEveryLineWithinItsWidth(t *testing.T) {
	text := "some words and averyveryverylongwordthatfitsnowhere→→→→→→→→→→→→ end"
	for width := 8; width < 40; width++ {
		var all string
		for _, l := range wrap(text, width) {
			if n := len([]rune(l)); n > width {
				t.Errorf("width %d: %q has %d", width, l, n)
			}
			all += strings.ReplaceAll(l, " ", "")
		}
		if all != strings.ReplaceAll(text, " ", "") {
			t.Errorf("width %d lost text: %q", width, all)
		}
	}
}
