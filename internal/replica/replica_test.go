package replica

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/sessions/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// open opens a replica that shares a store.
func open(t *testing.T, shared store.Store, key byte, handler http.HandlerFunc) *Replica {
	t.Helper()
	return openWith(t, shared, []store.Key{{key}}, handler)
}

func openWith(t *testing.T, shared store.Store, keys []store.Key, handler http.HandlerFunc) *Replica {
	t.Helper()
	r, err := Open(t.Context(), Options{Store: shared, Keys: keys, Replica: downstream.NewReplicaID(), Listen: "127.0.0.1:0", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	r.Serve(handler, func() {})
	t.Cleanup(r.Close)
	return r
}

func request(t *testing.T, method, body string) *http.Request {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	ctx = context.WithValue(ctx, http.ServerContextKey, &http.Server{}) // a response that breaks off panics, as it does there
	return httptest.NewRequestWithContext(ctx, method, "http://bridge.test/mcp", strings.NewReader(body))
}

// lapse takes a replica's lease away, as if it had not renewed it.
func lapse(t *testing.T, shared store.Store, r *Replica) {
	t.Helper()
	err := shared.Commit(t.Context(), store.Replicas, store.Change{Kind: store.Lease, ID: r.opt.Replica.String(), Replaces: store.Any, Delete: true})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRequestsAreServedByAnotherReplica(t *testing.T) {
	shared := store.NewMemory(10)
	here := open(t, shared, 1, nil)
	there := open(t, shared, 1, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, r.Method+" "+r.Host+" "+string(body))
		if IsHandedOn(r) {
			_, _ = io.WriteString(w, " handed on")
		}
	})
	w := httptest.NewRecorder()
	if !here.Forward(w, request(t, http.MethodPost, "text"), []byte("text"), there.opt.Replica) || w.Code != http.StatusAccepted || w.Body.String() != "POST bridge.test text" {
		t.Errorf("forwarded: %d %s", w.Code, w.Body)
	}
	w = httptest.NewRecorder()
	if !here.HandOn(w, request(t, http.MethodPost, "text"), []byte("text"), there.opt.Replica) || w.Body.String() != "POST bridge.test text handed on" {
		t.Errorf("handed on: %d %s", w.Code, w.Body)
	}
}

// A forwarded request is its client's, whoever that says that it is.
func TestAForwardedRequestComesFromItsClient(t *testing.T) {
	shared := store.NewMemory(10)
	here := open(t, shared, 1, nil)
	there := open(t, shared, 1, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.RemoteAddr+" "+r.Header.Get(clientHeader))
	})
	r := request(t, http.MethodPost, "")
	r.RemoteAddr = "192.0.2.7:1234"
	r.Header.Set(clientHeader, "198.51.100.1:1")
	w := httptest.NewRecorder()
	if !here.Forward(w, r, nil, there.opt.Replica) || w.Body.String() != "192.0.2.7:1234 " {
		t.Errorf("it came from %s", w.Body)
	}
}

// What concerns the client's own connection stays there: some clients wish for HTTP/2 with each request.
func TestWhatConcernsAConnectionIsNotForwarded(t *testing.T) {
	shared := store.NewMemory(10)
	here := open(t, shared, 1, nil)
	there := open(t, shared, 1, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, string(body)+r.Header.Get("Upgrade")+r.Header.Get("Http2-Settings")+r.Header.Get("Connection"))
	})
	for upgrade, connection := range map[string]string{"h2c": "Upgrade, HTTP2-Settings", "TLS/1.2": "Upgrade", "websocket": "keep-alive, Upgrade", "": "close", "x": ""} {
		for _, trailer := range []string{"X-A", "Trailer", "Content-Length", "Transfer-Encoding"} {
			r := request(t, http.MethodPost, "text")
			r.Header = http.Header{"Upgrade": {upgrade}, "Connection": {connection}, "Http2-Settings": {"AAMAAABkAARAAAAAAAIAAAAA"}, "Keep-Alive": {"timeout=5"}, "Te": {"trailers"}}
			if !strings.Contains(connection, "Settings") {
				r.Header.Del("Http2-Settings")
			}
			r.Trailer = http.Header{trailer: {"1"}}
			w := httptest.NewRecorder()
			if !here.Forward(w, r, []byte("text"), there.opt.Replica) || w.Body.String() != "text" {
				t.Errorf("%q, %q, %s: %d %s", upgrade, connection, trailer, w.Code, w.Body)
			}
		}
	}
}

// TestNobodyPretendsToBeHandedOn: the mark of one client's request is not another's.
func TestNobodyPretendsToBeHandedOn(t *testing.T) {
	shared := store.NewMemory(10)
	here := open(t, shared, 1, nil)
	there := open(t, shared, 1, func(_ http.ResponseWriter, r *http.Request) {
		if IsHandedOn(r) {
			t.Error("a client's own header counts")
		}
	})
	r := request(t, http.MethodGet, "")
	r.Header.Set(header, "leaving")
	here.Forward(httptest.NewRecorder(), r, nil, there.opt.Replica)
}

func TestWhatIsNotThereIsNotForwarded(t *testing.T) {
	shared := store.NewMemory(10)
	here := open(t, shared, 1, nil)
	there := open(t, shared, 1, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMisdirectedRequest) })
	for name, id := range map[string]downstream.ReplicaID{
		"one that does not have it": there.opt.Replica, "itself": here.opt.Replica, "nobody": 0, "one that never was": downstream.NewReplicaID(),
	} {
		w := httptest.NewRecorder()
		if here.Forward(w, request(t, http.MethodPost, ""), nil, id) || w.Body.Len() > 0 || len(w.Header()) > 0 {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
	}
}

// TestForwardWaitsForAReplicaUntilItsLeaseEnds: while it has one nobody else may go on
// with what it has.
func TestForwardWaitsForAReplicaUntilItsLeaseEnds(t *testing.T) {
	shared := store.NewMemory(10)
	here := open(t, shared, 1, nil)
	there, err := Open(t.Context(), Options{Store: shared, Keys: []store.Key{{1}}, Replica: downstream.NewReplicaID(), Listen: "127.0.0.1:0", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	_ = there.listener.Close() // as after kill -9
	forwarded := make(chan bool)
	go func() {
		forwarded <- here.Forward(httptest.NewRecorder(), request(t, http.MethodPost, ""), nil, there.opt.Replica)
	}()
	select {
	case <-forwarded:
		t.Error("it did not wait")
	case <-time.After(forwardAgain):
	}
	there.Close()
	if <-forwarded {
		t.Error("somebody dead has served it")
	}
}

// TestWhoLeavesBeforeAnotherReplicaAnswersIsAnsweredNothing: it may have closed only its sending half, and would take an
// empty response for an answer.
func TestWhoLeavesBeforeAnotherReplicaAnswersIsAnsweredNothing(t *testing.T) {
	shared := store.NewMemory(10)
	here := open(t, shared, 1, nil)
	asked := make(chan struct{})
	there := open(t, shared, 1, func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	})
	r := request(t, http.MethodPost, "")
	ctx, leave := context.WithCancel(r.Context())
	w, end := httptest.NewRecorder(), make(chan any)
	go func() {
		defer func() { end <- recover() }()
		here.Forward(w, r.WithContext(ctx), nil, there.opt.Replica)
	}()
	<-asked
	leave()
	if end := <-end; end != http.ErrAbortHandler || w.Body.Len() > 0 {
		t.Errorf("%v, told %s", end, w.Body)
	}
}

// TestAResponseEndsWithItsReplica: a stream of one that was taken for dead ends in good order, so
// that its client comes back for the rest.
func TestAResponseEndsWithItsReplica(t *testing.T) {
	shared := store.NewMemory(10)
	here := open(t, shared, 1, nil)
	begun, ended := make(chan struct{}), make(chan struct{})
	there := open(t, shared, 1, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		close(begun)
		<-r.Context().Done()
		close(ended)
	})
	over := make(chan struct{})
	go func() {
		defer close(over)
		here.Forward(httptest.NewRecorder(), request(t, http.MethodGet, ""), nil, there.opt.Replica)
	}()
	<-begun
	there.stop() // it renews no more
	lapse(t, shared, there)
	<-over
	<-ended
}

// TestStreamsOfOthersDoNotHoldUpAReplicaThatStops: their clients come back elsewhere.
func TestStreamsOfOthersDoNotHoldUpAReplicaThatStops(t *testing.T) {
	shared := store.NewMemory(10)
	here := open(t, shared, 1, nil)
	begun := make(chan struct{}, 2)
	there := open(t, shared, 1, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		begun <- struct{}{}
		<-r.Context().Done()
	})
	over := make(chan struct{})
	go func() {
		defer close(over)
		here.HandOn(httptest.NewRecorder(), request(t, http.MethodGet, ""), nil, there.opt.Replica)
	}()
	<-begun
	here.EndStreams()
	<-over
	if here.HandOn(httptest.NewRecorder(), request(t, http.MethodGet, ""), nil, there.opt.Replica) {
		t.Error("another stream is passed on")
	}
}

// TestAPostThatWasHandedOnIsNotRepeated_D15: it may have begun what may be done only once.
func TestAPostThatWasHandedOnIsNotRepeated_D15(t *testing.T) {
	shared := store.NewMemory(10)
	here := open(t, shared, 1, nil)
	var runs atomic.Int32
	there := open(t, shared, 1, func(_ http.ResponseWriter, r *http.Request) {
		runs.Add(1)
		_, _ = io.ReadAll(r.Body)
		panic(http.ErrAbortHandler)
	})
	w := httptest.NewRecorder()
	if !here.HandOn(w, request(t, http.MethodPost, "once"), []byte("once"), there.opt.Replica) || w.Code != http.StatusBadGateway || runs.Load() != 1 {
		t.Errorf("it ran %d times and was answered %d", runs.Load(), w.Code)
	}
}

func TestStrangersAreNoReplicas(t *testing.T) {
	shared := store.NewMemory(10)
	here := open(t, shared, 1, nil)
	stranger := open(t, shared, 2, func(http.ResponseWriter, *http.Request) { t.Error("it was served by a stranger") })
	go func() { // it is still there, and can't be spoken with
		<-time.After(2 * forwardAgain)
		stranger.Close()
	}()
	if here.Forward(httptest.NewRecorder(), request(t, http.MethodPost, ""), nil, stranger.opt.Replica) {
		t.Error("it was forwarded")
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: stranger.transport.TLSClientConfig}}
	if resp, err := client.Get("https://" + here.Address()); err == nil { //nolint:noctx // it fails at once
		_ = resp.Body.Close()
		t.Error("a stranger was served")
	}
	if _, err := Open(t.Context(), Options{Store: shared, Listen: "127.0.0.1:0"}); err == nil {
		t.Error("a replica needs no key")
	}
}

func TestReplicasWithTheSameKeysInAnotherOrderKnowEachOther(t *testing.T) {
	shared := store.NewMemory(10)
	keys := func(list ...byte) (keys []store.Key) {
		for _, k := range list {
			keys = append(keys, store.Key{k})
		}
		return keys
	}
	served := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }
	before := openWith(t, shared, keys(1, 2), served)
	after := openWith(t, shared, keys(2, 1), served)
	for _, pair := range [][2]*Replica{{before, after}, {after, before}} {
		if !pair[0].Forward(httptest.NewRecorder(), request(t, http.MethodPost, ""), nil, pair[1].opt.Replica) {
			t.Error("one does not know the other")
		}
	}
}

// broken is a store that fails.
type broken struct{ store.Store }

var errBroken = errors.New("broken")

func (broken) Commit(context.Context, string, ...store.Change) error { return errBroken }

func TestWithoutALeaseThereIsNoReplica(t *testing.T) {
	_, err := Open(t.Context(), Options{Store: broken{store.NewMemory(1)}, Keys: []store.Key{{1}}, Replica: 1, Listen: "127.0.0.1:0", Log: zerolog.Nop()})
	if !errors.Is(err, errBroken) {
		t.Errorf("it opened: %v", err)
	}
}

func TestLeasesOfNewerVersionsAndGarbageAreLeftAlone(t *testing.T) {
	shared := store.NewMemory(10)
	here := open(t, shared, 1, nil)
	for id, value := range map[string]string{"7fffffff": "garbage", "nothex": `{"v":1,"address":"x"}`, "40000001": `{"v":1}`} {
		if err := shared.Commit(t.Context(), store.Replicas, store.Change{Kind: store.Lease, ID: id, Replaces: store.Any, TTL: time.Minute, Value: []byte(value)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := here.look(t.Context()); err != nil || len(here.Others()) > 0 {
		t.Errorf("%v, %v", here.Others(), err)
	}
}

// cutOff opens a replica that has a lease, and that nothing gets to.
func cutOff(t *testing.T, shared store.Store) {
	t.Helper()
	r, err := Open(t.Context(), Options{Store: shared, Keys: []store.Key{{1}}, Replica: downstream.NewReplicaID(), Listen: "127.0.0.1:0", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	_ = r.listener.Close()
	r.running.Go(r.live)
	t.Cleanup(r.Close)
}

// A replica that is cut off keeps nothing from those that are well, nor from an answer; a
// replica that comes only now is asked, too.
func TestAReplicaThatIsCutOffHoldsUpNobody(t *testing.T) {
	shared := store.NewMemory(10)
	here := open(t, shared, 1, nil)
	here.silence = 2 * forwardAgain
	cutOff(t, shared)
	if err := here.look(t.Context()); err != nil || here.Alone(t.Context()) {
		t.Fatalf("nobody else is known: %v", err)
	}
	var asked atomic.Int32
	open(t, shared, 1, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusMisdirectedRequest)
	})
	w := httptest.NewRecorder()
	if served, known := here.ForwardAny(w, request(t, http.MethodPost, ""), nil); served || known || asked.Load() != 1 || w.Body.Len() > 0 {
		t.Errorf("served %t, known %t, by one that was asked %d times", served, known, asked.Load())
	}
	open(t, shared, 1, func(w http.ResponseWriter, r *http.Request) {
		if IsHandedOn(r) {
			w.WriteHeader(http.StatusAccepted)
		}
	})
	if w := httptest.NewRecorder(); !here.HandOnAny(w, request(t, http.MethodPost, ""), nil) || w.Code != http.StatusAccepted {
		t.Errorf("handed on: %d", w.Code)
	}
}

// Who is dead, or does not have it, is nobody to wait for.
func TestWhatNobodyHasIsKnown(t *testing.T) {
	shared := store.NewMemory(10)
	here := open(t, shared, 1, nil)
	if served, known := here.ForwardAny(httptest.NewRecorder(), request(t, http.MethodPost, ""), nil); served || !known || !here.Alone(t.Context()) {
		t.Errorf("alone: served %t, known %t", served, known)
	}
	there := open(t, shared, 1, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMisdirectedRequest) })
	if served, known := here.ForwardAny(httptest.NewRecorder(), request(t, http.MethodPost, ""), nil); served || !known {
		t.Errorf("with one that does not have it: served %t, known %t", served, known)
	}
	_ = there.listener.Close()
	lapse(t, shared, there)
	if err := here.look(t.Context()); err != nil || here.HandOnAny(httptest.NewRecorder(), request(t, http.MethodPost, ""), nil) {
		t.Errorf("handed on to the dead: %v", err)
	}
}

// The log is told once of a replica that is cut off, and once of its return.
func TestTheLogIsToldOfAReplicaThatIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r, m := &Replica{opt: Options{Log: zerolog.New(&log)}}, &member{alive: t.Context()}
		r.missed(m, io.EOF)
		r.reached(m)
		time.Sleep(2 * leaseTTL)
		r.missed(m, io.EOF)
		if log.Len() > 0 {
			t.Fatalf("it is told of an attempt: %s", &log)
		}
		time.Sleep(2 * leaseTTL)
		r.missed(m, io.EOF)
		r.missed(m, io.EOF)
		r.reached(m)
		r.reached(m)
		if told := log.String(); strings.Count(told, "requests do not get there") != 1 || strings.Count(told, "can be reached again") != 1 {
			t.Errorf("it is told %s", told)
		}
	})
}
