package h1

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// field puts lines of the header into an otherwise ordinary request.
func withLines(lines ...string) string {
	return "POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n"
}

func TestWhatIsServedHereAndWhatIsNot(t *testing.T) {
	for text, want := range map[string]verdict{
		get:                  whole,
		post("{}"):           whole,
		withLines("A: b"):    whole,
		withLines("a:b \t"):  whole,
		withLines("A: \xff"): whole,
		withLines("A:"):      whole,
		withLines("A: b", "A: c", "Connection: Keep-Alive"):   whole,
		"GET /a%20b?c=d&e HTTP/1.1\r\nHost: [::1]:80\r\n\r\n": whole,

		"GET / HTTP/1.1\r\nHost: x\r\n":       partial,
		"G":                                   partial,
		"":                                    partial,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":    foreign,
		"GET / HTTP/1.0\r\nHost: x\r\n\r\n":   foreign,
		"GET / HTTP/1.1\r\n\r\n":              foreign,
		"GET / HTTP/1.1\r\nHost: \r\n\r\n":    foreign,
		"GET / HTTP/1.1\r\nHost: a b\r\n\r\n": foreign,
		"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n":                          foreign,
		"GET / HTTP/1.1\nHost: a\n\n":                                           foreign,
		"GET / HTTP/1.1\nHost: a":                                               foreign,
		"GET / HTTP/1.1\r\nHost: a\r\nB: c\n":                                   foreign,
		"GET / HTTP/1.1\r\nHost: a\n\r\n\r\n":                                   foreign,
		"GET  / HTTP/1.1\r\nHost: a\r\n\r\n":                                    foreign,
		"GET / HTTP/1.1 \r\nHost: a\r\n\r\n":                                    foreign,
		"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n":                                  foreign,
		"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n":                                 foreign,
		"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n":                                  foreign,
		"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n":                             foreign,
		"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n":                                 foreign,
		"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n":                              foreign,
		"get / HTTP/1.1\r\nHost: a\r\n\r\n":                                     foreign,
		"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n":                                 foreign,
		"\x16\x03\x01":                                                          foreign,
		withLines("Content-Length: 1", "Content-Length: 1"):                     foreign,
		withLines("Content-Length: 1, 1"):                                       foreign,
		withLines("Content-Length: +1"):                                         foreign,
		withLines("Content-Length: -1"):                                         foreign,
		withLines("Content-Length: 0x1"):                                        foreign,
		withLines("Content-Length: 1_0"):                                        foreign,
		withLines("Content-Length:"):                                            foreign,
		withLines("Content-Length: 9999999999999999999"):                        foreign,
		withLines("Transfer-Encoding: chunked"):                                 foreign,
		withLines("transfer-encoding: identity"):                                foreign,
		withLines("Content-Length: 1", "TRANSFER-ENCODING:\tchunked"):           refused,
		withLines("Expect: 100-continue"):                                       foreign,
		withLines("Upgrade: websocket", "Connection: Upgrade"):                  foreign,
		withLines("Connection: close"):                                          foreign,
		withLines("Connection: keep-alive, close"):                              foreign,
		withLines("Trailer: A"):                                                 foreign,
		withLines("A : b"):                                                      foreign,
		withLines("A: b", " c"):                                                 foreign,
		withLines("A: b", "\tc"):                                                foreign,
		withLines(" A: b"):                                                      foreign,
		withLines(": b"):                                                        foreign,
		withLines("A"):                                                          foreign,
		withLines("A(: b"):                                                      foreign,
		withLines("A: b\rc"):                                                    foreign,
		withLines("A: b\x00"):                                                   foreign,
		withLines("A: b\x7f"):                                                   foreign,
		"POST /mcp HTTP/1.1\r\n Host: localhost\r\nHost: localhost\r\n\r\n":     foreign,
		"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length : 5\r\n\r\n{}": foreign,
	} {
		var h head
		got := partial
		if text != "" {
			_, got = h.read([]byte(text))
		}
		if got != want {
			t.Errorf("%q: verdict %d, want %d", text, got, want)
		}
	}
}

// agrees checks one head, with what follows, against net/http.
func agrees(t *testing.T, h *head, b []byte, n int) {
	t.Helper()
	in := bufio.NewReader(bytes.NewReader(b))
	r, err := http.ReadRequest(in)
	if err != nil {
		t.Fatalf("%q: net/http says %v", b, err)
	}
	same := func(what string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %s is %#v, for net/http %#v", b, what, got, want)
		}
	}
	same("method", h.req.Method, r.Method)
	same("URL", h.req.URL, r.URL)
	same("target", h.req.RequestURI, r.RequestURI)
	same("host", h.req.Host, r.Host)
	same("protocol", []any{h.req.Proto, h.req.ProtoMajor, h.req.ProtoMinor}, []any{r.Proto, r.ProtoMajor, r.ProtoMinor})
	same("length", h.length, r.ContentLength)
	same("encoding", []string(nil), r.TransferEncoding)
	same("close", false, r.Close)
	length := r.Header["Content-Length"]
	delete(r.Header, "Content-Length")
	if len(length) > 1 || len(length) == 1 && strings.TrimLeft(length[0], "0") != strings.TrimLeft(strconv.FormatInt(h.length, 10), "0") {
		t.Fatalf("%q: length is %d, for net/http %q", b, h.length, length)
	}
	same("header", h.req.Header, r.Header)
	body, err := io.ReadAll(r.Body)
	ours := b[n:]
	if int64(len(ours)) > h.length {
		ours = ours[:h.length]
	}
	if err == nil {
		same("body", string(ours), string(body))
		rest, _ := io.ReadAll(in)
		same("rest", string(b[n+len(ours):]), string(rest))
	}
}

var seeds = []string{
	get, post("{}"), post("[1]") + get, withLines("a:b", "A:  c ", "x-y: z", "Connection: keep-alive"),
	"GET //a/../b%2f?x#y HTTP/1.1\r\nHost: a:1\r\nContent-Length: 003\r\n\r\nabcd",
	"POST / HTTP/1.1\r\nHost: x\r\ncontent-length:\t5 \r\nX: 1\r\n\r\nhello", withLines("Transfer-Encoding: chunked"),
	"GET /* HTTP/1.1\r\nHost: a\r\nCookie: a=b; c=d\r\nOrigin: null\r\n\r\n", withLines("Content-Length: 1\r\nContent-Length: 2"),
}

// FuzzHead: what is served here net/http accepts with the same meaning. A second
// head on the same connection may be taken for the first one only if it is.
func FuzzHead(f *testing.F) {
	for _, a := range seeds {
		for _, b := range seeds {
			f.Add([]byte(a), []byte(b))
		}
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var h head
		for _, b := range [][]byte{first, second, first} {
			if len(b) == 0 {
				continue
			}
			n, v := h.read(b)
			if v == whole {
				agrees(t, &h, b, n)
			}
			var fresh head
			m, w := fresh.read(b)
			if n != m || v != w {
				t.Fatalf("%q after another: %d bytes, verdict %d; alone %d, %d", b, n, v, m, w)
			}
			if v == whole && (h.length != fresh.length || !reflect.DeepEqual(h.req.Header, fresh.req.Header)) {
				t.Fatalf("%q after another is another request", b)
			}
		}
	})
}

func TestARepeatedHeadIsTheSameRequestWithItsOwnLength(t *testing.T) {
	var h head
	first := []byte(post("{}"))
	if _, v := h.read(first); v != whole {
		t.Fatal("not served here")
	}
	header := h.req.Header
	for _, length := range []string{"0", "7", "00012", "123456789012345678"} {
		b := []byte(strings.Replace(string(first), "Content-Length: 2", "Content-Length: "+length, 1))
		n, v := h.read(b)
		if v != whole || n != len(b)-2 {
			t.Fatalf("length %s: %d bytes, verdict %d", length, n, v)
		}
		if want, _ := strconv.ParseInt(length, 10, 64); h.length != want {
			t.Errorf("length %d, want %s", h.length, length)
		}
		if reflect.ValueOf(header).Pointer() != reflect.ValueOf(h.req.Header).Pointer() {
			t.Error("the header was made again")
		}
	}
	for _, length := range []string{"", "a", "1a", "1 2", "1234567890123456789", "1\r\nContent-Length: 2"} {
		b := []byte(strings.Replace(string(first), "Content-Length: 2", "Content-Length: "+length, 1))
		if _, v := h.read(b); v != foreign {
			t.Errorf("length %q: verdict %d", length, v)
		}
	}
}

func TestAHeaderThatAHandlerChangedIsNotUsedAgain(t *testing.T) {
	_, addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("X-Forwarded-For"))
		r.Header.Del("X-Forwarded-For")
	})
	w := dial(t, addr)
	for range 3 {
		w.send("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1\r\n\r\n")
		if got := w.body(); got != "1" {
			t.Fatalf("%q", got)
		}
	}
}

func BenchmarkHead(b *testing.B) {
	request := []byte(post("{}"))
	other := bytes.Replace(request, []byte("0123456789abcdef"), []byte("abcdef0123456789"), 1)
	b.Run("repeated", func(b *testing.B) {
		var h head
		b.ReportAllocs()
		for b.Loop() {
			h.read(request)
		}
	})
	b.Run("new", func(b *testing.B) {
		var h head
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			h.read([][]byte{request, other}[i&1])
		}
	})
	b.Run("net-http", func(b *testing.B) {
		b.ReportAllocs()
		in := bytes.NewReader(request)
		br := bufio.NewReader(in)
		for b.Loop() {
			in.Reset(request)
			br.Reset(in)
			if _, err := http.ReadRequest(br); err != nil {
				b.Fatal(err)
			}
		}
	})
}
