package passthrough

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/hop"
)

func handler(t *testing.T, upstream string) http.Handler {
	t.Helper()
	u, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	proxy := New(Options{URL: u, Policy: hop.Policy{Header: http.Header{"Authorization": {"Bearer ours"}}}, Log: zerolog.Nop()})
	t.Cleanup(proxy.Close)
	return proxy
}

func TestRequestsCrossUnchangedButForHeadersOfTheHop(t *testing.T) {
	const body = `{"jsonrpc":"2.0", "id":1,"method":"server/discover","params":{"x":"\ud800"}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ := io.ReadAll(r.Body)
		if string(got) != body {
			t.Errorf("the server got %q", got)
		}
		if r.URL.Path != "/rpc" || r.URL.RawQuery != "tenant=1" {
			t.Errorf("the server got URL %s", r.URL)
		}
		for name, want := range map[string]string{
			"Mcp-Method": "server/discover", "Authorization": "Bearer ours", "Cookie": "", "Origin": "",
			"Forwarded": "", "X-Forwarded-For": "", "Proxy-Authorization": "", "Sec-Fetch-Mode": "",
		} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("header %s = %q, want %q", name, got, want)
			}
		}
		w.Header().Set("X-Kept", "yes")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "answer")
	}))
	defer server.Close()

	req := httptest.NewRequest(http.MethodPost, "/mcp?theirs=1", strings.NewReader(body))
	req.Header = http.Header{
		"Mcp-Method": {"server/discover"}, "Authorization": {"Bearer theirs"}, "Cookie": {"a=b"}, "Origin": {"http://localhost"},
		"Forwarded": {"for=1"}, "X-Forwarded-For": {"1"}, "Proxy-Authorization": {"x"}, "Sec-Fetch-Mode": {"cors"},
	}
	rec := httptest.NewRecorder()
	handler(t, server.URL+"/rpc?tenant=1").ServeHTTP(rec, req)
	if rec.Code != http.StatusTeapot || rec.Body.String() != "answer" || rec.Header().Get("X-Kept") != "yes" {
		t.Errorf("the client got %d %v %q", rec.Code, rec.Header(), rec.Body)
	}
}

// TestE42ARedirectIsFollowedOrSaid: its client does not know the server's address.
func TestE42ARedirectIsFollowedOrSaid(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/mcp":
			w.Header().Set("Location", "/mcp/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		case "/elsewhere":
			w.Header().Set("Location", "https://example.com/secret")
			w.WriteHeader(http.StatusPermanentRedirect)
		default:
			_, _ = w.Write(got)
		}
	}))
	defer server.Close()
	for path, want := range map[string]struct {
		status int
		body   string
	}{
		"/mcp":       {http.StatusOK, "text"},
		"/elsewhere": {http.StatusBadGateway, "the MCP server behind the bridge redirects (HTTP 308) to where the bridge does not follow; if that is right, configure that URL\n"},
	} {
		req := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader("text"))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("text")), nil }
		rec := httptest.NewRecorder()
		handler(t, server.URL+path).ServeHTTP(rec, req)
		if rec.Code != want.status || rec.Body.String() != want.body {
			t.Errorf("%s: the client got %d %q", path, rec.Code, rec.Body)
		}
	}
}

// A server over HTTP judges by itself whether the head of a request says what its body says.
func TestHeadersOfAModernRequestAreForItsServerToJudge(t *testing.T) {
	const refusal = `{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Mcp-Name is not the name"}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Mcp-Name"); got != "harmless" {
			t.Errorf("Mcp-Name is %q", got)
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, refusal)
	}))
	defer server.Close()
	req := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"harmful"}}`))
	req.Header = http.Header{"Mcp-Method": {"tools/call"}, "Mcp-Name": {"harmless"}}
	rec := httptest.NewRecorder()
	handler(t, server.URL).ServeHTTP(rec, req)
	if rec.Code != http.StatusBadRequest || rec.Body.String() != refusal {
		t.Errorf("the client got %d %q", rec.Code, rec.Body)
	}
}

func TestDeadServerIsBadGateway(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	rec := httptest.NewRecorder()
	handler(t, server.URL).ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader("{}")))
	if rec.Code != http.StatusBadGateway || strings.Contains(rec.Body.String(), server.URL) {
		t.Errorf("the client got %d %q", rec.Code, rec.Body)
	}
}

func TestCredentialsOfClientsAreDroppedWhereTheyAreNotMeantForTheServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "got "+r.Header.Get("Authorization"))
	}))
	defer server.Close()
	u, _ := url.Parse(server.URL)
	proxy := New(Options{URL: u, Policy: hop.Policy{DropAuthorization: true}})
	defer proxy.Close()
	req := httptest.NewRequest(http.MethodPost, "/", nil)
	req.Header.Set("Authorization", "Bearer theirs")
	rec := httptest.NewRecorder()
	proxy.ServeHTTP(rec, req)
	if rec.Body.String() != "got " {
		t.Errorf("the server %s", rec.Body)
	}
}

// TestTheBridgeDecidesAboutPages: it has answered the preflight and set its own
// headers; two of a kind would make a browser refuse the response.
func TestTheBridgeDecidesAboutPages(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("X-Kept", "yes")
	}))
	defer server.Close()
	rec := httptest.NewRecorder()
	rec.Header().Set("Access-Control-Allow-Origin", "https://page.example")
	handler(t, server.URL).ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader("{}")))
	if got := rec.Header()["Access-Control-Allow-Origin"]; len(got) != 1 || got[0] != "https://page.example" || rec.Header().Get("X-Kept") != "yes" {
		t.Errorf("the client got %v", rec.Header())
	}
}

// held is a server whose responses begin and go on until they are released.
func held(t *testing.T) (front *httptest.Server, proxy *Proxy, release chan struct{}) {
	t.Helper()
	release = make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "first\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-release:
			_, _ = io.WriteString(w, "last\n")
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy = New(Options{URL: u})
	front = httptest.NewServer(proxy)
	t.Cleanup(func() { proxy.Close(); front.Close() })
	return front, proxy, release
}

// open sends a request and reads the first line of the response.
func open(t *testing.T, client *http.Client, method, url, mcpMethod string) (rest *bufio.Reader) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Mcp-Method", mcpMethod)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	rest = bufio.NewReader(resp.Body)
	if line, err := rest.ReadString('\n'); line != "first\n" {
		t.Fatalf("the response begins with %q, %v", line, err)
	}
	return rest
}

func TestDrainingEndsWhatNeverEndsAndLetsCallsFinish(t *testing.T) {
	front, proxy, release := held(t)
	call := open(t, front.Client(), http.MethodPost, front.URL, "tools/call")
	listen := open(t, front.Client(), http.MethodPost, front.URL, "subscriptions/listen")
	stream := open(t, front.Client(), http.MethodGet, front.URL, "")
	if proxy.Active() != 3 {
		t.Errorf("%d requests are under way", proxy.Active())
	}
	stopped := make(chan error, 1)
	go func() { stopped <- proxy.Shutdown(t.Context()) }()
	for name, rest := range map[string]*bufio.Reader{"listen": listen, "stream": stream} {
		if text, err := io.ReadAll(rest); err == nil || len(text) > 0 {
			t.Errorf("%s ends with %q, %v", name, text, err)
		}
	}
	resp, err := front.Client().Post(front.URL, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("another request gets %s", resp.Status)
	}
	close(release)
	if text, err := io.ReadAll(call); string(text) != "last\n" || err != nil {
		t.Errorf("the call ends with %q, %v", text, err)
	}
	if err := <-stopped; err != nil || proxy.Active() != 0 {
		t.Errorf("the shutdown ends with %v and %d requests under way", err, proxy.Active())
	}
}

func TestTheTimeToDrainIsBounded(t *testing.T) {
	front, proxy, _ := held(t)
	call := open(t, front.Client(), http.MethodPost, front.URL, "tools/call")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := proxy.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the shutdown ends with %v", err)
	}
	if text, err := io.ReadAll(call); err == nil {
		t.Errorf("the call that was cut off ends with %q as if it were complete", text)
	}
}

func TestAClientThatLeavesCancelsItsRequest(t *testing.T) {
	gone := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "first\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	}))
	defer server.Close()
	front := httptest.NewServer(handler(t, server.URL))
	defer front.Close()
	client := front.Client()
	open(t, client, http.MethodPost, front.URL, "tools/call")
	front.CloseClientConnections()
	<-gone
}

// What no client is to see is told it in words.
func TestAResponseThatNoClientIsToSee(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "secret") }))
	defer server.Close()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := New(Options{URL: u, Log: zerolog.Nop(), Answered: func(*http.Response) error { return &Unusable{"its id is too long"} }})
	defer proxy.Close()
	w := httptest.NewRecorder()
	proxy.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader("{}")))
	if w.Code != http.StatusBadGateway || strings.TrimSpace(w.Body.String()) != "its id is too long" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
