package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/bench/client"
	"github.com/mcpbridge/bridge/bench/stub"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

func open(t *testing.T, addr string) *client.Session {
	t.Helper()
	main, side := client.NewConn(addr, 4096), client.NewConn(addr, 4096)
	t.Cleanup(main.Close)
	t.Cleanup(side.Close)
	s := client.NewSession(addr, main, side)
	if err := s.Open(); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEveryToolAnswersItsOwnCall(t *testing.T) {
	l := stub.NewLegacy(20)
	addr := serve(t, l)
	var wg sync.WaitGroup
	for i := range 8 {
		s := open(t, addr)
		wg.Go(func() {
			for k, tool := range []string{stub.Echo, stub.EchoName(3), stub.Ask, stub.Ask3, stub.Steps, stub.Big, stub.Echo} {
				if err := s.Call(tool, fmt.Sprintf("%d-%d", i, k)); err != nil {
					t.Error(err)
				}
			}
			if err := s.List(); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if s := stats(t, addr); s.Violations != 0 || s.Sessions != 0 || s.Calls != 56 || s.Questions != 32 {
		t.Errorf("stats: %+v", s)
	}
}

// TestASessionNeedsOneConnection: DELETE's 204 has no length, and must not cost
// the connection.
func TestASessionNeedsOneConnection(t *testing.T) {
	var opened atomic.Int32
	srv := httptest.NewUnstartedServer(stub.NewLegacy(5))
	srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	main := client.NewConn(srv.Listener.Addr().String(), 1024)
	defer main.Close()
	for range 3 {
		s := client.NewSession("x", main, nil)
		if err := errors.Join(s.Open(), s.List(), s.Call(stub.Echo, "n"), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestHeldCallCompletesWhenAnswered(t *testing.T) {
	addr := serve(t, stub.NewLegacy(5))
	s := open(t, addr)
	h, err := s.Suspend(stub.Ask, "n1")
	if err != nil {
		t.Fatal(err)
	}
	h.Rest()
	if got := stats(t, addr); got.Held != 1 {
		t.Errorf("held %d calls", got.Held)
	}
	answers := client.NewConn(addr, 1024)
	defer answers.Close()
	if err := h.Resume(answers); err != nil {
		t.Fatal(err)
	}
	if err := s.Call(stub.Echo, "n2"); err != nil {
		t.Errorf("the connection serves the next call: %v", err)
	}
}

func TestListChangedReachesAnOpenStream(t *testing.T) {
	addr := serve(t, stub.NewLegacy(5))
	main := client.NewConn(addr, 512)
	s := client.NewSession(addr, main, nil)
	if err := s.Open(); err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	got := make(chan struct{})
	ended := make(chan error, 1)
	go func() { ended <- s.Notifications(func() { got <- struct{}{} }) }()
	for range 3 {
		change(t, addr)
		<-got
	}
	main.Abort()
	if err := <-ended; err == nil {
		t.Error("a stream that was cut reports it")
	}
	main.Close()
}

// TestWrongAnswersAreErrors shows the checks: each response below is what a
// faulty proxy could produce, and none may count as a call that succeeded.
func TestWrongAnswersAreErrors(t *testing.T) {
	event := func(msgs ...string) string {
		var b strings.Builder
		for _, m := range msgs {
			fmt.Fprintf(&b, ": comment\n\nid: s-1\nevent: message\ndata: %s\n\n", m)
		}
		return b.String()
	}
	progress := func(token string, n int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, token, n)
	}
	result := func(id, text, more string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]%s}}`, id, text, more)
	}
	all := make([]string, 0, stub.StepCount+1)
	for i := range stub.StepCount {
		all = append(all, progress("2", i+1))
	}
	whole := append(append([]string{}, all...), result("2", "steps:n", ""))
	swapped := append([]string{}, whole...)
	swapped[3], swapped[4] = swapped[4], swapped[3]
	for name, c := range map[string]struct {
		tool, answer string
		sse, good    bool
	}{
		"right":               {stub.Echo, result("2", "echo:n", ""), false, true},
		"right, streamed":     {stub.Echo, event(result("2", "echo:n", "")), true, true},
		"another call's text": {stub.Echo, result("2", "echo:m", ""), false, false},
		"another id":          {stub.Echo, result("3", "echo:n", ""), false, false},
		"id of another type":  {stub.Echo, result(`"2"`, "echo:n", ""), false, false},
		"resultType leaked":   {stub.Echo, result("2", "echo:n", `,"resultType":"complete"`), false, false},
		"serverInfo leaked":   {stub.Echo, result("2", "echo:n", `,"_meta":{"io.modelcontextprotocol/serverInfo":{}}`), false, false},
		"error":               {stub.Echo, `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"x"}}`, false, false},
		"truncated big":       {stub.Big, result("2", "big:n", ""), false, false},
		"no question":         {stub.Ask, result("2", "ask:n:n/0", ""), false, false},
		"progress":            {stub.Steps, event(whole...), true, true},
		"progress lost":       {stub.Steps, event(whole[1:]...), true, false},
		"progress swapped":    {stub.Steps, event(swapped...), true, false},
		"progress after it":   {stub.Steps, event(append(whole, progress("2", 11))...), true, false},
		"foreign token":       {stub.Steps, event(progress("3", 1)), true, false},
		"no response":         {stub.Steps, event(all...), true, false},
		"foreign question": {stub.Ask, event(`{"jsonrpc":"2.0","id":"s","method":"elicitation/create","params":{"message":"Confirm m/0",` +
			`"requestedSchema":{"properties":{"v":{}}}}}`), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			good := stub.NewLegacy(5)
			addr := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil || !strings.Contains(string(body), `"tools/call"`) {
					r.Body = io.NopCloser(strings.NewReader(string(body)))
					good.ServeHTTP(w, r)
					return
				}
				w.Header().Set("Content-Type", map[bool]string{true: "text/event-stream", false: "application/json"}[c.sse])
				_, _ = io.WriteString(w, c.answer)
			}))
			err := open(t, addr).Call(c.tool, "n")
			if (err == nil) != c.good {
				t.Errorf("error: %v", err)
			}
		})
	}
}

func stats(t *testing.T, addr string) stub.Stats {
	t.Helper()
	resp, err := http.Get("http://" + addr + stub.PathStats)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	var s stub.Stats
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

func change(t *testing.T, addr string) {
	t.Helper()
	resp, err := http.Post("http://"+addr+stub.PathChanged, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
}
