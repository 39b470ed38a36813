package passthrough

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/upstream"
)

func TestSubscriptionsEndGracefullyWhenTheBridgeStops(t *testing.T) {
	ack := jsonrpc.Message{Method: mcp.NotificationAcknowledged,
		Params: []byte(`{"_meta":{"io.modelcontextprotocol/subscriptionId":99},"notifications":{}}`)}
	s, ended := stuck(&ack)
	p := NewProcess(ProcessOptions{Server: s})
	front := httptest.NewServer(p)
	defer front.Close()
	r := request(mcp.MethodListen, "", `,"notifications":{}`)
	out, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL, r.Body)
	if err != nil {
		t.Fatal(err)
	}
	out.Header = r.Header
	resp, err := front.Client().Do(out)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	_, _ = lines.ReadString('\n')
	if line, _ := lines.ReadString('\n'); !strings.Contains(line, `"io.modelcontextprotocol/subscriptionId":"c"`) {
		t.Errorf("the acknowledgment is %s", line)
	}
	if err := p.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	rest, err := io.ReadAll(lines)
	if err != nil || !strings.Contains(string(rest), `{"jsonrpc":"2.0","id":"c","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"c"}}}`) {
		t.Errorf("the subscription ends with %s, %v", rest, err)
	}
	<-ended
	rec := httptest.NewRecorder()
	if p.ServeHTTP(rec, request("x/y", "", "")); rec.Code != http.StatusServiceUnavailable {
		t.Errorf("afterwards: %d", rec.Code)
	}
}

func TestASubscriptionAtAProcessEndsWithItsToken_E24(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := stuck(nil)
		p := NewProcess(ProcessOptions{Server: s})
		defer p.Close()
		ctx := lapsesAfter(t.Context(), time.Minute)
		rec := httptest.NewRecorder()
		p.ServeHTTP(rec, request(mcp.MethodListen, "", `,"notifications":{}`).WithContext(ctx))
		if want := `"id":"c","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"c"}}}`; !strings.Contains(rec.Body.String(), want) {
			t.Errorf("it ends with %d %q", rec.Code, rec.Body)
		}
	})
}

func TestAClientThatLeavesCancelsAtTheProcess_E47(t *testing.T) {
	s, ended := stuck(nil)
	p := NewProcess(ProcessOptions{Server: s})
	defer p.Close()
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan any)
	rec := httptest.NewRecorder()
	go func() {
		defer func() { done <- recover() }()
		p.ServeHTTP(rec, request("x/y", "", "").WithContext(ctx))
	}()
	leave()
	<-ended
	if end := <-done; end != http.ErrAbortHandler || rec.Body.Len() > 0 {
		t.Errorf("%v, told %s", end, rec.Body)
	}
}

func TestACallThatIsCutOffIsToldSo(t *testing.T) {
	s, ended := stuck(&jsonrpc.Message{Method: "notifications/x"})
	p := NewProcess(ProcessOptions{Server: s})
	done := make(chan struct{})
	rec := httptest.NewRecorder()
	go func() { defer close(done); p.ServeHTTP(rec, request("x/y", "", "")) }()
	for p.Active() == 0 || len(s.seen()) == 0 {
		select {
		case <-done:
			t.Fatal("the call ended")
		default:
		}
	}
	p.Close()
	<-ended
	<-done
	if !strings.Contains(rec.Body.String(), `"code":-32603`) {
		t.Errorf("it is told %s", rec.Body)
	}
}

// TestALongResponseIsAStreamThatIsKeptAlive_E6: under a fake clock.
func TestARequestToAProcessHasATimeLimit(t *testing.T) {
	for _, tc := range []struct {
		name     string
		progress time.Duration // how often the server says something
		want     time.Duration
	}{{"silent", 0, 2 * time.Minute}, {"talkative", time.Minute, 30 * time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			server := &scripted{verbatim: func(ctx context.Context, _ *upstream.Call, notify func(jsonrpc.Message)) (*upstream.Answer, error) {
				for {
					tick := make(<-chan time.Time)
					if tc.progress > 0 {
						tick = time.After(tc.progress)
					}
					select {
					case <-tick:
						notify(jsonrpc.Message{Method: mcp.NotificationProgress, Params: []byte(`{}`)})
					case <-ctx.Done():
						return nil, &upstream.Failure{Cause: upstream.Timeout, Err: context.Cause(ctx), Detail: context.Cause(ctx).Error()}
					}
				}
			}}
			began := time.Now()
			rec := ask(t, ProcessOptions{Server: server}, request("tools/list", "", ""))
			if took := time.Since(began); took != tc.want || !strings.Contains(rec.Body.String(), "-32603") {
				t.Errorf("%s: after %s it gets %s", tc.name, took, rec.Body)
			}
		})
	}
}

func TestALongResponseIsAStreamThatIsKeptAlive_E6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{verbatim: func(context.Context, *upstream.Call, func(jsonrpc.Message)) (*upstream.Answer, error) {
			time.Sleep(40 * time.Second)
			return &upstream.Answer{Error: &jsonrpc.Error{Code: -32601, Message: "m"}}, nil
		}}
		rec := ask(t, ProcessOptions{Server: s}, request("x/y", "", ""))
		if got := rec.Body.String(); rec.Code != 200 || strings.Count(got, ":\n\n") != 3 || !strings.HasSuffix(got, "\"code\":-32601,\"message\":\"m\"}}\n\n") {
			t.Errorf("the client got %d %q", rec.Code, got)
		}
	})
}

// takesNothing is the connection of a client that has stopped reading.
type takesNothing struct {
	*httptest.ResponseRecorder
	until time.Time
}

func (c *takesNothing) SetWriteDeadline(t time.Time) error { c.until = t; return nil }

func (c *takesNothing) Write([]byte) (int, error) {
	time.Sleep(time.Until(c.until)) // of a write without a deadline the test need not wait for the end
	return 0, os.ErrDeadlineExceeded
}

func TestClientThatTakesNoResponseIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewProcess(ProcessOptions{Server: answering(upstream.Answer{Result: []byte(`{}`)}, nil), WriteTimeout: time.Second})
		defer p.Close()
		began := time.Now()
		p.ServeHTTP(&takesNothing{ResponseRecorder: httptest.NewRecorder()}, request("x/y", "", ""))
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v", took)
		}
	})
}
