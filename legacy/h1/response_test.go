package h1

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// handlers are ways to answer.
var handlers = map[string]http.HandlerFunc{
	"nothing": func(http.ResponseWriter, *http.Request) {},
	"status":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) },
	"odd":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(599) },
	"empty":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
	"empty with a body": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "3")
		w.WriteHeader(http.StatusNoContent)
		_, err := io.WriteString(w, "abc")
		if err != http.ErrBodyNotAllowed {
			panic(err)
		}
	},
	"unchanged": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", "3")
		w.Header().Set("Etag", `"x"`)
		w.WriteHeader(http.StatusNotModified)
	},
	"text": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") },
	"html": func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<html>")
		_, _ = io.WriteString(w, "x")
	},
	"no type": func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		_, _ = io.WriteString(w, "x")
	},
	"no date":  func(w http.ResponseWriter, _ *http.Request) { w.Header()["Date"] = nil },
	"own date": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Date", "today") },
	"encoded": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, "x")
	},
	"error":    func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) },
	"notfound": http.NotFound,
	"json": func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = typeJSON
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, `{"a":1}`)
	},
	"large": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100000")
		_, _ = io.WriteString(w, strings.Repeat("x", 100000))
	},
	"large in two": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100003")
		_, _ = io.WriteString(w, "abc")
		_, _ = io.WriteString(w, strings.Repeat("x", 100000))
	},
	"large without a length": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 100000)) },
	"many pieces": func(w http.ResponseWriter, _ *http.Request) {
		for i := range 3000 {
			_, _ = io.WriteString(w, strconv.Itoa(i))
		}
	},
	"too much": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "3")
		_, _ = io.WriteString(w, "abc")
		if _, err := io.WriteString(w, "d"); err != http.ErrContentLength {
			panic(err)
		}
	},
	"events": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		rc := http.NewResponseController(w)
		_ = rc.Flush()
		for range 3 {
			_, _ = io.WriteString(w, "data: x\n\n")
			_ = rc.Flush()
		}
		_, _ = io.WriteString(w, "data: end\n\n")
	},
	"flush of nothing": func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() },
	"flush with a length": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "4")
		_, _ = io.WriteString(w, "ab")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, "cd")
	},
	"close": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		_, _ = io.WriteString(w, "x")
	},
	"split header": func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["X-A"] = []string{"b\r\nX-C: d", " e "}
		w.Header()["Bad Name"] = []string{"x"}
	},
	"late header": func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(200)
		w.Header().Set("X-Late", "1")
	},
	"wide header": func(w http.ResponseWriter, _ *http.Request) {
		for i := range 40 {
			w.Header().Set("X-"+strconv.Itoa(i), strings.Repeat("v", 150))
		}
		_, _ = io.WriteString(w, "x")
	},
	"hints": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "x")
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "x")
	},
	"trailers": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum, x-other")
		_, _ = io.WriteString(w, "x")
		_ = http.NewResponseController(w).Flush()
		w.Header().Set("X-Sum", "1")
		w.Header().Set(http.TrailerPrefix+"X-New", "2")
	},
	"panic": func(http.ResponseWriter, *http.Request) { panic("x") },
	"abort": func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "x")
		panic(http.ErrAbortHandler)
	},
	"twice":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(202); w.WriteHeader(404) },
	"invalid": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(1) },
	"short": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "9")
		_, _ = io.WriteString(w, "abc")
	},
	"too large":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(413) },
	"request":       describe,
	"read the body": echo,
}

// describe answers with what it sees of the request.
func describe(w http.ResponseWriter, r *http.Request) {
	header := r.Header.Clone()
	header.Del("Content-Length")
	body, err := io.ReadAll(r.Body)
	local := r.Context().Value(http.LocalAddrContextKey)
	_, _ = fmt.Fprint(w, r.Method, r.URL, r.Proto, header, r.Host, r.ContentLength, r.RequestURI, r.RemoteAddr != "", r.TLS,
		local != nil, r.Context().Value(http.ServerContextKey) != nil, r.TransferEncoding, r.Close, r.Form, len(body), err)
}

var requests = []string{
	get, strings.Replace(get, "GET", "HEAD", 1), post("{}"), post(strings.Repeat("y", 10000)), post(strings.Repeat("z", 300<<10)),
}

// outcome is everything that a client can learn from one request.
func outcome(t *testing.T, addr, request string) string {
	w := dial(t, addr)
	go func() { _, _ = io.WriteString(w, request) }() // the server may answer before it has all
	method, _, _ := strings.Cut(request, " ")
	var all strings.Builder
	for {
		resp, err := http.ReadResponse(w.in, &http.Request{Method: method})
		if err != nil {
			return all.String() + "no response"
		}
		if date := resp.Header.Get("Date"); strings.HasSuffix(date, "GMT") {
			resp.Header.Set("Date", "now")
		}
		body, err := io.ReadAll(resp.Body)
		fmt.Fprintln(&all, resp.Status, resp.Header, resp.ContentLength, resp.TransferEncoding, resp.Close, resp.Trailer, len(body), err)
		all.Write(body[:min(len(body), 500)])
		if resp.StatusCode >= 200 {
			break
		}
	}
	if strings.HasPrefix(request, "POST") {
		return all.String()
	}
	if _, err := io.WriteString(w, get); err == nil {
		if _, err = http.ReadResponse(w.in, nil); err == nil {
			return all.String() + "kept"
		}
	}
	return all.String() + "closed"
}

// TestResponsesAreThoseOfNetHTTP compares what clients see of the two.
func TestResponsesAreThoseOfNetHTTP(t *testing.T) {
	for name, handler := range handlers {
		t.Run(name, func(t *testing.T) {
			_, ours := serve(t, handler)
			theirs := serveStandard(t, handler)
			for _, request := range requests {
				got, want := outcome(t, ours, request), outcome(t, theirs, request)
				if got != want {
					t.Errorf("%.20q\n got %.700s\nwant %.700s", request, got, want)
				}
			}
		})
	}
}

func TestASmallAnswerAndTheLastEventLeaveInOnePiece(t *testing.T) {
	for name, want := range map[string][]string{
		"json":   {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: now\r\nContent-Length: 7\r\n\r\n{\"a\":1}"},
		"status": {"HTTP/1.1 202 Accepted\r\nDate: now\r\nContent-Length: 0\r\n\r\n"},
		"events": {
			"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nDate: now\r\nTransfer-Encoding: chunked\r\n\r\n",
			"9\r\ndata: x\n\n\r\n", "9\r\ndata: x\n\n\r\n", "9\r\ndata: x\n\n\r\n", "b\r\ndata: end\n\n\r\n0\r\n\r\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			nc := &scripted{in: strings.NewReader(get)}
			s := New(handlers[name], &http.Server{})
			cn := newConn(s, nc)
			s.add(cn)
			cn.serve()
			var got []string
			for _, text := range nc.out {
				if i := strings.Index(text, "Date: "); i >= 0 {
					text = text[:i] + "Date: now" + text[i+len("Date: ")+len(http.TimeFormat):]
				}
				got = append(got, text)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q", got)
			}
		})
	}
}
