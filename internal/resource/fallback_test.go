package resource

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/mcpbridge/bridge/internal/budget"
)

// ownIssuer is a server of 2025-03-26 without any metadata, which has its places at the root.
func ownIssuer(t *testing.T, said func(r *http.Request, body string)) *server {
	s := newServer(t)
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/token", "/register":
			body, _ := io.ReadAll(r.Body)
			said(r, string(body))
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Set-Cookie", "a=b")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"at":"`+r.URL.Path+`"}`)
		default:
			inner.ServeHTTP(w, r)
		}
	})
	return s
}

func ask(h http.Handler, method, url, body string, header http.Header) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, url, strings.NewReader(body))
	for name, values := range header {
		r.Header[name] = values
	}
	h.ServeHTTP(w, r)
	return w
}

// A client of 2025-03-26 that finds no metadata goes to the places at the root of the
// server, which is the bridge to it.
func TestPlacesOfServersWithoutMetadata_H3(t *testing.T) {
	var saw []string
	s := ownIssuer(t, func(r *http.Request, body string) {
		saw = append(saw, r.URL.Path+" "+r.Header.Get("Content-Type")+" "+r.Header.Get("Authorization")+" "+r.Header.Get("Cookie")+" "+body)
	})
	_, h := relay(t, s, "https://mcp.example.com", io.Discard)
	if w := ask(h, http.MethodGet, "https://mcp.example.com/authorize?client_id=a%20b&state=s", "", nil); w.Code != http.StatusFound || w.Header().Get("Location") != s.URL+"/authorize?client_id=a%20b&state=s" {
		t.Errorf("the browser is sent to %q with %d", w.Header().Get("Location"), w.Code)
	}
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Authorization": {"Basic YTpi"}, "Cookie": {"secret=1"}}
	w := ask(h, http.MethodPost, "https://mcp.example.com/token", "grant_type=authorization_code&code=c", header)
	if w.Code != http.StatusCreated || w.Body.String() != `{"at":"/token"}` || w.Header().Get("Set-Cookie") != "" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("a code was answered %d %s %v", w.Code, w.Body, w.Header())
	}
	ask(h, http.MethodPost, "https://mcp.example.com/register", `{"redirect_uris":[]}`, http.Header{"Content-Type": {"application/json"}})
	want := []string{"/token application/x-www-form-urlencoded Basic YTpi  grant_type=authorization_code&code=c", `/register application/json   {"redirect_uris":[]}`}
	if strings.Join(saw, "\n") != strings.Join(want, "\n") {
		t.Errorf("the server saw %q", saw)
	}
	for request, status := range map[string]int{"POST /authorize": 405, "GET /token": 405, "OPTIONS /token": 204, "PUT /register": 405} {
		method, path, _ := strings.Cut(request, " ")
		if w := ask(h, method, "https://mcp.example.com"+path, "", nil); w.Code != status {
			t.Errorf("%s answers %d", request, w.Code)
		}
	}
	if w := ask(h, http.MethodPost, "https://mcp.example.com/token", strings.Repeat("x", maxForm+1), nil); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a request without end answers %d", w.Code)
	}
}

// A page may have a browser send a form to those places: what it then shows is on the
// bridge's origin.
func TestWhatAServerSaysAtItsPlacesRunsNothing_H12(t *testing.T) {
	asked := 0
	s := ownIssuer(t, func(*http.Request, string) { asked++ })
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(html{w}, r)
	})
	_, h := relay(t, s, "https://mcp.example.com", io.Discard)
	w := ask(h, http.MethodPost, "https://mcp.example.com/token", "a=b", nil)
	if head := w.Header(); asked != 1 || head.Get("Content-Type") != "text/plain" || head.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(head.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("a page of the server came with %v", head)
	}
	for _, path := range []string{"/token", "/register"} {
		w := ask(h, http.MethodPost, "https://mcp.example.com"+path, "a=b", http.Header{"Sec-Fetch-Mode": {"navigate"}, "Sec-Fetch-Dest": {"document"}})
		if w.Code != http.StatusForbidden || asked != 1 {
			t.Errorf("a form sent to %s is answered %d, the server was asked %d times", path, w.Code, asked)
		}
	}
}

// html calls everything a page.
type html struct{ http.ResponseWriter }

func (h html) WriteHeader(status int) {
	h.Header().Set("Content-Type", "text/html")
	h.ResponseWriter.WriteHeader(status)
}

// Where there are metadata, nothing is handed on past them.
func TestNoPlacesBesideMetadata_H3(t *testing.T) {
	for path, document := range map[string]string{
		"/.well-known/oauth-protected-resource/mcp": `{"resource":"SELF/mcp","authorization_servers":["https://login.example.com"]}`,
		"/.well-known/oauth-authorization-server":   `{"issuer":"SELF","token_endpoint":"SELF/oauth/token"}`,
		"/.well-known/openid-configuration":         `{"issuer":"SELF","token_endpoint":"SELF/oauth/token"}`,
	} {
		s := ownIssuer(t, func(r *http.Request, _ string) { t.Errorf("%s was handed on", r.URL.Path) })
		s.documents[path] = document
		_, h := relay(t, s, "", io.Discard)
		for request, status := range map[string]int{"GET /authorize": 404, "POST /token": 404, "POST /register": 404} {
			method, at, _ := strings.Cut(request, " ")
			if w := ask(h, method, "http://localhost"+at, "", nil); w.Code != status {
				t.Errorf("with %s, %s answers %d", path, request, w.Code)
			}
		}
	}
}

// A server that is down is no server without metadata.
func TestPlacesOfAServerThatIsDown_H3(t *testing.T) {
	s := newServer(t)
	_, h := relay(t, s, "", io.Discard)
	s.Close()
	if w := ask(h, http.MethodGet, "http://localhost/authorize?x=y", "", nil); w.Code != http.StatusBadGateway || strings.Contains(w.Body.String(), "x=y") {
		t.Errorf("answers %d %s", w.Code, w.Body)
	}
}

// Sign-ins that wait for a slow server are bounded.
func TestPlacesAreBounded(t *testing.T) {
	s := ownIssuer(t, func(*http.Request, string) { t.Error("one too many was handed on") })
	r, _ := relay(t, s, "", io.Discard)
	f := newFallback(r.source.(*relayed))
	for range maxForwards {
		f.places.Take("")
	}
	if w := ask(f.routes()[tokenPath], http.MethodPost, "http://localhost/token", "", nil); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("answers %d", w.Code)
	}
}

// waitingBody is a request's body that somebody sends as slowly as it goes.
type waitingBody struct{ asked, end chan struct{} }

func (b waitingBody) Read([]byte) (int, error) {
	b.asked <- struct{}{}
	<-b.end
	return 0, io.EOF
}

// Who sends slowly has no place yet, and one address does not get all of them.
func TestOneAddressLeavesPlacesToOthers(t *testing.T) {
	said := make(chan struct{}, maxForwards+1)
	s := ownIssuer(t, func(*http.Request, string) { said <- struct{}{} })
	r, _ := relay(t, s, "", io.Discard)
	source := r.source.(*relayed)
	source.Party = func(r *http.Request) string { return r.RemoteAddr }
	f := newFallback(source)
	token := f.routes()[tokenPath]
	slow := waitingBody{make(chan struct{}), make(chan struct{})}
	var all sync.WaitGroup
	defer all.Wait()
	defer close(slow.end)
	for range maxForwards {
		all.Go(func() {
			token.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "http://localhost/token", io.NopCloser(slow)))
		})
		<-slow.asked
	}
	for free, _ := f.places.Take("greedy"); free != nil; free, _ = f.places.Take("greedy") {
	}
	if w := ask(token, http.MethodPost, "http://localhost/token", "a=b", nil); w.Code != http.StatusCreated {
		t.Errorf("somebody else gets %d %s", w.Code, w.Body)
	}
	select {
	case <-said:
	default:
		t.Error("nothing was handed on")
	}
}

// What is posted is charged to who posts it while it comes, and others are served.
func TestFormsThatComeSlowlyAreCharged(t *testing.T) {
	s := ownIssuer(t, func(*http.Request, string) {})
	r, _ := relay(t, s, "", io.Discard)
	source := r.source.(*relayed)
	source.Party = func(r *http.Request) string { return r.RemoteAddr }
	source.Memory = budget.New(4 << 20)
	token := newFallback(source).routes()[tokenPath]
	slow := waitingBody{make(chan struct{}), make(chan struct{})}
	var all sync.WaitGroup
	defer all.Wait()
	defer close(slow.end)
	post := func(length int64) <-chan int {
		status := make(chan int, 1)
		r := httptest.NewRequest(http.MethodPost, "http://localhost/token", io.NopCloser(slow))
		r.RemoteAddr, r.ContentLength = "greedy", length
		all.Go(func() {
			w := httptest.NewRecorder()
			token.ServeHTTP(w, r)
			status <- w.Code
		})
		return status
	}
	for held := 0; ; held++ {
		refused := post([]int64{-1, maxForm, 1 << 40}[held%3])
		select {
		case <-slow.asked:
			if used := int(source.Memory.Used()); used < (held+1)*maxForm || held > 64 {
				t.Fatalf("%d are held, and %d bytes charged", held+1, used)
			}
			continue
		case code := <-refused:
			if code != http.StatusServiceUnavailable || held < 8 {
				t.Errorf("after %d the next one is answered %d", held, code)
			}
		}
		break
	}
	if w := ask(token, http.MethodPost, "http://localhost/token", "a=b", nil); w.Code != http.StatusCreated {
		t.Errorf("somebody else gets %d %s", w.Code, w.Body)
	}
}
