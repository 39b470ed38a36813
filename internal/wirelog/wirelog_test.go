package wirelog

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorded serves one request with handler and returns its entries as text.
func recorded(t *testing.T, body io.Reader, handler http.HandlerFunc) string {
	t.Helper()
	rec := &Recorder{}
	srv := httptest.NewServer(rec.Handler(Downstream, handler))
	defer srv.Close()
	res, err := srv.Client().Post(srv.URL, "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	srv.Close() // waits for the handler
	return listed(rec)
}

func listed(rec *Recorder) string {
	var lines []string
	for _, e := range rec.Entries() {
		lines = append(lines, fmt.Sprintf("%d:%d:%s", e.Kind, e.Status, e.Data))
	}
	return strings.Join(lines, " ")
}

func write(w http.ResponseWriter, parts ...string) {
	for _, p := range parts {
		_, _ = io.WriteString(w, p)
		w.(http.Flusher).Flush()
	}
}

func TestABodyIsOneEntryHoweverItIsWritten(t *testing.T) {
	got := recorded(t, strings.NewReader(`{"id":1}`), func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		write(w, `{"a":`, `[1,2`, `]}`, "\n")
	})
	if want := `0:200:{"id":1} 1:200:{"a":[1,2]}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestEventsAreEntriesWhereverTheWritesCut(t *testing.T) {
	got := recorded(t, strings.NewReader(`{}`), func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		write(w, ": hello\n\nid: s-0\nda", "ta: \n\nevent: message\nid: s-1\ndata: {\"a\"", ":1}\n", "\ndata: one\ndata: two\n\ndata: cut off")
	})
	if want := "0:200:{} 3:200: 2:200:{\"a\":1} 2:200:one\ntwo"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestARequestWithoutBodyOrLengthIsRecorded(t *testing.T) {
	for name, body := range map[string]io.Reader{"none": nil, "unknown length": io.MultiReader(strings.NewReader(`{`), strings.NewReader(`}`))} {
		want := map[string]string{"none": "0:202:", "unknown length": "0:202:{}"}[name]
		got := recorded(t, body, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			w.WriteHeader(http.StatusAccepted)
		})
		if got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestAClosedStreamIsAbandonedUnlessItHadItsResponse(t *testing.T) {
	for response, want := range map[string]int{
		`data: {"method":"notifications/progress"}` + "\n\n": 1,
		`data: {"id":1,"result":{}}` + "\n\n":                0,
	} {
		rec := &Recorder{}
		srv := httptest.NewServer(rec.Handler(Upstream, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			write(w, response)
			<-r.Context().Done()
			write(w, "data: {\"nobody\":\"sees this\"}\n\n")
		})))
		ctx, hangUp := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL, strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		hangUp()
		_ = res.Body.Close()
		srv.Close()
		if got := strings.Count(listed(rec), "4:"); got != want {
			t.Errorf("%s: %d entries say abandoned, want %d: %s", response, got, want, listed(rec))
		}
		if strings.Contains(listed(rec), "nobody") {
			t.Errorf("recorded what nobody could see: %s", listed(rec))
		}
	}
}

func TestTheOldestEntriesGoFirst(t *testing.T) {
	rec := &Recorder{Limit: 2}
	for i := range 5 {
		rec.add(Entry{Exchange: i})
	}
	if e := rec.Entries(); len(e) != 2 || e[0].Exchange != 3 || e[1].Exchange != 4 {
		t.Errorf("kept %+v", e)
	}
}

func FuzzEventsNeverPanic(f *testing.F) {
	f.Add([]byte("id: 1\ndata: {}"))
	f.Add([]byte(": comment"))
	f.Add([]byte("data\ndata:"))
	f.Fuzz(func(t *testing.T, block []byte) {
		kind, data, ok := parseEvent(block)
		if ok && kind == Event && len(data) == 0 {
			t.Error("an event without data")
		}
	})
}
