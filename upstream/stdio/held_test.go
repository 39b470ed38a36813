package stdio

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/inorder"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/upstream"
)

// What has come of a line of a process that all share is charged, whoever it is for. One for
// which there is no memory fails its call, and no other.
func TestLinesOfASharedProcessAreChargedWhileTheyCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(4 << 20)
		p := newPipe(2<<20, memory.Own(), zerolog.Nop())
		from, to := io.Pipe()
		go func() { p.read(from); p.end() }()
		wait := func(id jsonrpc.ID) *waiter {
			w := newWaiter(&request{id: id, call: &upstream.Call{}}, sink{}, nil)
			p.waiting[id] = w
			return w
		}
		say := func(text string) { _, _ = io.WriteString(to, text); synctest.Wait() }
		large, other, refused := wait("1"), wait("2"), wait("3")
		say(`{"jsonrpc":"2.0","id":1,"result":{"x":"` + strings.Repeat("x", 1<<20))
		if used := memory.Used(); used < 1<<20-64<<10 {
			t.Errorf("%d bytes of a line are charged that has a mebibyte", used)
		}
		say(`"}}` + "\n" + `{"jsonrpc":"2.0","id":2,"result":{}}` + "\n")
		if large.ans == nil || other.ans == nil || memory.Used() != 0 {
			t.Errorf("answered %v and %v, %d bytes are still charged", large.ans, other.ans, memory.Used())
		}
		stranger := memory.Guest("somebody")
		stranger.Charge(3 << 20)
		say(`{"jsonrpc":"2.0","id":3,"result":{"x":"` + strings.Repeat("x", 1<<20) + `"}}` + "\n")
		if f := refused.failed; f == nil || f.Cause != upstream.NoMemory || !budget.Short(f) {
			t.Errorf("without memory: %v", f)
		}
		last := wait("4")
		say(`{"jsonrpc":"2.0","id":4,"result":{}}` + "\n" + `{"x":"` + strings.Repeat("x", 200<<10))
		if last.ans == nil {
			t.Error("a small answer behind it is lost")
		}
		stranger.Give(3 << 20)
		_ = to.Close()
		synctest.Wait()
		if left := memory.Used(); left != 0 {
			t.Errorf("%d bytes are still charged at the end", left)
		}
	})
}

// TestTheAnswerOfARetryIsReadWhateverOthersHold: the server has done what it says. Where not even a quarter more is left its process waits
// until there is.
func TestTheAnswerOfARetryIsReadWhateverOthersHold(t *testing.T) {
	for name, others := range map[string]int{"as much as there is": 4 << 20, "far more": 6 << 20} {
		synctest.Test(t, func(t *testing.T) {
			memory := budget.New(4 << 20)
			p := newPipe(2<<20, memory.Own(), zerolog.Nop())
			from, to := io.Pipe()
			go func() { p.read(from); p.end() }()
			w := newWaiter(&request{id: "1", call: &upstream.Call{}}, sink{}, nil)
			w.owed = true
			p.waiting["1"] = w
			stranger := memory.Guest("somebody")
			stranger.Charge(others)
			go func() {
				_, _ = io.WriteString(to, `{"jsonrpc":"2.0","id":1,"result":{"x":"`+strings.Repeat("x", 1<<19)+`"}}`+"\n")
				_ = to.Close()
			}()
			time.Sleep(time.Second)
			stranger.Give(others - 4<<20)
			time.Sleep(time.Second)
			synctest.Wait()
			if w.ans == nil {
				t.Errorf("%s: %v", name, w.failed)
			}
			stranger.Give(4 << 20)
			synctest.Wait()
			if left := memory.Used(); left != 0 {
				t.Errorf("%s: %d bytes are still charged at the end", name, left)
			}
		})
	}
}

// What waits for a slow caller is charged to it until it has been taken.
func TestWhatWaitsForASlowCallerIsCharged(t *testing.T) {
	memory := budget.New(4 << 20)
	w := newWaiter(&request{id: "1", call: &upstream.Call{}}, sink{}, memory.Guest("slow"))
	big := jsonrpc.Message{Params: bytes.Repeat([]byte("x"), 1<<20)}
	if !w.push(big) || memory.Used() != 1<<20 || w.push(big) {
		t.Errorf("%d bytes are charged for what waits", memory.Used())
	}
	w.deliver(sink{notify: func(jsonrpc.Message) {
		if memory.Used() != 1<<20 {
			t.Errorf("%d bytes are charged for what is being taken", memory.Used())
		}
	}})
	if memory.Used() != 0 || !w.push(big) {
		t.Errorf("%d bytes are charged for what was taken", memory.Used())
	}
	if w.close(); memory.Used() != 0 || !w.push(big) || memory.Used() != 0 {
		t.Errorf("%d bytes are charged when nobody waits", memory.Used())
	}
}

// An answer waits behind the notifications, and is charged like them.
func TestAnAnswerThatWaitsForASlowCallerIsCharged(t *testing.T) {
	memory := budget.New(8 << 20)
	big := jsonrpc.Message{Params: bytes.Repeat([]byte("x"), 1<<20)}
	w := newWaiter(&request{id: "2", call: &upstream.Call{}}, sink{}, memory.Guest("slow"))
	w.push(big)
	if w.finish(&upstream.Answer{Result: make([]byte, upstream.HeldStep)}, nil); memory.Used() != 1<<20+upstream.HeldStep {
		t.Errorf("%d bytes are charged for what waits with its answer", memory.Used())
	}
	w.close()
	memory.Guest("somebody").Charge(8 << 20)
	w = newWaiter(&request{id: "3", call: &upstream.Call{}}, sink{}, memory.Guest("slow"))
	w.finish(&upstream.Answer{Result: big.Params}, nil)
	if _, ans, failed := w.deliver(sink{}); ans != nil || failed == nil || failed.Cause != upstream.NoMemory {
		t.Errorf("an answer without memory: %v, %v", ans, failed)
	}
}

// owing is a Held that has no room for a response yet.
type owing struct {
	room chan struct{} // closed when there is
	paid chan int      // what the response is charged to until then
}

func (o owing) Set(int) error { return budget.ErrShare }

func (o owing) TakeOver(paid *budget.Hold, _ int) error {
	o.paid <- paid.Bytes()
	<-o.room
	paid.Release()
	return nil
}

// The answer to a retry is there, so it counts, whether there is memory for it or not, until the call
// is charged with it.
func TestAnAnswerOfARetryThatWaitsForMemoryIsCharged(t *testing.T) {
	withWire(t, func(t *testing.T, w *wire) {
		memory := budget.New(4 << 20)
		memory.Own().Charge(4 << 20)
		held := owing{make(chan struct{}), make(chan int, 1)}
		call := withMeta("a", `"progressToken":1`)
		call.Account, call.Held = memory.Guest("alice"), held
		done := make(chan error)
		went := make(chan struct{})
		notify := func(jsonrpc.Message) { <-went } // so its answer has come before a notification is passed on
		go func() { _, err := w.do(t.Context(), requestOf(call), sink{notify: notify}); done <- err }()
		id := w.receive().ID
		w.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, id)
		w.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":2}}`, id)
		w.send(`{"jsonrpc":"2.0","id":%s,"result":{"x":"%s"}}`, id, strings.Repeat("x", 1<<20))
		synctest.Wait()
		if used := memory.Used() - 4<<20; used != 1<<20 {
			t.Errorf("%d bytes are charged for an answer of a mebibyte that its caller has yet to take", used)
		}
		close(went)
		if paid, used := <-held.paid, memory.Used()-4<<20; paid != 1<<20 || used != 1<<20 {
			t.Errorf("%d bytes are handed over, and %d charged while the call waits for memory", paid, used)
		}
		close(held.room)
		if err := <-done; err != nil || memory.Used() != 4<<20 {
			t.Errorf("%v, and %d bytes are left charged", err, memory.Used()-4<<20)
		}
	})
}

// What waits for a process to read it is charged to whose it is, until it is written or the
// process has ended. A small message is always carried.
func TestWhatWaitsForAProcessIsCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, o := budget.New(4<<20), newOutlet()
		in, out := io.Pipe()
		go o.write(out)
		greedy, other := memory.Guest("greedy"), memory.Guest("other")
		large := bytes.Repeat([]byte("x"), 500<<10)
		put := func(of *budget.Account, text []byte) error {
			return o.put(t.Context(), of, text, new(inorder.Link), nil)
		}
		taken := 0
		for put(greedy, large) == nil {
			taken++
		}
		if err := put(greedy, large); !budget.Short(err) || taken == 0 || memory.Used() != int64(taken*len(large)) {
			t.Errorf("%d lines wait, %d bytes are charged, %v", taken, memory.Used(), err)
		}
		if put(greedy, []byte("small")) != nil || put(other, large) != nil {
			t.Error("what is small, or another's, does not pass")
		}
		if _, err := io.ReadFull(in, large); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if used := memory.Used(); used != int64(taken*len(large)+5) {
			t.Errorf("once one is written, %d bytes are charged", used)
		}
		o.shut()
		if err := put(other, large); err != ErrEnded {
			t.Errorf("after the end: %v", err)
		}
		_ = in.Close()
		synctest.Wait()
		if left := memory.Used(); left != 0 {
			t.Errorf("%d bytes are still charged at the end", left)
		}
	})
}

// What waits keeps the line that it came in only where it is most of that: nobody is charged for the rest.
func TestWhatWaitsKeepsNoMoreOfItsLine(t *testing.T) {
	p := newPipe(1<<24, nil, zerolog.Nop())
	for method, line := range map[string]string{
		"notification": `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1},"junk":"` + strings.Repeat("x", 1<<20) + `"}`,
		"answer":       `{"jsonrpc":"2.0","id":1,"result":{"progressToken":1},"junk":"` + strings.Repeat("x", 1<<20) + `"}`,
	} {
		w := newWaiter(&request{id: "1", call: &upstream.Call{Params: []byte(`{"_meta":{"progressToken":1}}`)}}, sink{}, nil)
		w.token, p.waiting["1"] = []byte("1"), w
		text := []byte(line)
		p.dispatch(text)
		clear(text)
		var got []byte
		_, ans, _ := w.deliver(sink{notify: func(msg jsonrpc.Message) { got = msg.Params }})
		if ans != nil {
			got = ans.Result
		}
		if string(got) != `{"progressToken":1}` {
			t.Errorf("the %s is part of its line: %q", method, got)
		}
	}
}

// TestALineHoldsAProcessUpOnce: not for each step of it.
func TestALineHoldsAProcessUpOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(4 << 20)
		p := newPipe(2<<20, memory.Own(), zerolog.Nop())
		from, to := io.Pipe()
		go func() { p.read(from); p.end() }()
		owed := newWaiter(&request{id: "1", call: &upstream.Call{}}, sink{}, nil)
		owed.owed = true
		p.waiting["1"] = owed
		other := newWaiter(&request{id: "2", call: &upstream.Call{}}, sink{}, nil)
		p.waiting["2"] = other
		stranger := memory.Guest("somebody")
		stranger.Charge(5<<20 - 100<<10) // not even a quarter more is left
		go func() {                      // what others give back comes a little at a time
			for range 40 {
				time.Sleep(4900 * time.Millisecond)
				stranger.Give(64 << 10)
			}
		}()
		began := time.Now()
		go func() {
			_, _ = io.WriteString(to, `{"jsonrpc":"2.0","id":3,"result":{"x":"`+strings.Repeat("x", 1<<20)+`"}}`+"\n") // nobody's by now
			_, _ = io.WriteString(to, `{"jsonrpc":"2.0","id":2,"result":{}}`+"\n")
			_ = to.Close()
		}()
		<-other.wake
		if took := time.Since(began); took > 2*linePatience {
			t.Errorf("a small answer waits %v behind one line of a mebibyte; the patience is %v", took, linePatience)
		}
		time.Sleep(10 * time.Minute)
	})
}

// retrying is a pipe on which a retry waits for its answer, and what its process writes.
func retrying(memory *budget.Budget) (w *waiter, process *io.PipeWriter) {
	p := newPipe(4<<20, memory.Own(), zerolog.Nop())
	from, to := io.Pipe()
	go func() { p.read(from); p.end() }()
	return owedOn(p, "1"), to
}

// owedOn is a retry that waits on a pipe.
func owedOn(p *pipe, id jsonrpc.ID) *waiter {
	w := newWaiter(&request{id: id, call: &upstream.Call{}}, sink{}, nil)
	w.owed = true
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting[id] = w
	return w
}

// answerOf is a line with the answer to a retry.
func answerOf(size int) string {
	return `{"jsonrpc":"2.0","id":1,"result":{"x":"` + strings.Repeat("x", size) + `"}}` + "\n"
}

// TestLinesThatHaveComeInPartDoNotWaitForEachOther: either fits, and both in part do not.
func TestLinesThatHaveComeInPartDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(8 << 20) // a quarter more: 2 MiB
		memory.Own().Charge(8 << 20)
		var waits [2]*waiter
		var processes [2]*io.PipeWriter
		for i := range waits {
			waits[i], processes[i] = retrying(memory)
			go func() {
				line := answerOf(3 << 19)
				for part := len(line) / 24; len(line) > 0; line = line[min(part, len(line)):] { // bit by bit, as pipes give it
					_, _ = io.WriteString(processes[i], line[:min(part, len(line))])
					time.Sleep(time.Millisecond)
				}
			}()
		}
		time.Sleep(2 * linePatience)
		synctest.Wait()
		for i, w := range waits {
			if w.ans == nil {
				t.Errorf("answer %d: %v", i, w.failed)
			}
			_ = processes[i].Close()
		}
		synctest.Wait()
		if left := memory.Used() - 8<<20; left != 0 {
			t.Errorf("%d bytes are left charged", left)
		}
	})
}

// TestALineThatIsOverLetsOthersComeAtOnce: whether more comes of its process or not.
func TestALineThatIsOverLetsOthersComeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(8 << 20)
		memory.Own().Charge(8 << 20)
		for i := range 2 {
			w, process := retrying(memory)
			go func() { _, _ = io.WriteString(process, answerOf(1<<20)) }()
			synctest.Wait() // and no time passes
			if w.ans == nil {
				t.Errorf("answer %d has not come", i)
			}
			defer time.Sleep(time.Minute)
			defer process.Close()
		}
	})
}

// TestAProcessThatStopsInItsLineKeepsNoOthersWaiting: theirs comes before their patience is over.
func TestAProcessThatStopsInItsLineKeepsNoOthersWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(8 << 20)
		memory.Own().Charge(8 << 20)
		_, stopped := retrying(memory)
		defer time.Sleep(time.Minute)
		defer stopped.Close()
		_, _ = io.WriteString(stopped, answerOf(1 << 20)[:512<<10])
		w, process := retrying(memory)
		defer process.Close()
		go func() { _, _ = io.WriteString(process, answerOf(1<<20)) }()
		time.Sleep(linePatience)
		synctest.Wait()
		if w.ans == nil {
			t.Errorf("behind one that has stopped: %v", w.failed)
		}
	})
}

// TestEachLineMayHoldItsProcessUp: the first was refused once the patience with it was over.
func TestEachLineMayHoldItsProcessUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := budget.New(8 << 20)
		others := memory.Own()
		others.Charge(10 << 20) // not even a quarter more is left
		p := newPipe(4<<20, memory.Own(), zerolog.Nop())
		from, to := io.Pipe()
		defer to.Close()
		go func() { p.read(from); p.end() }()
		for i, want := range []bool{false, true} {
			w := owedOn(p, "1")
			go func() { _, _ = io.WriteString(to, answerOf(1<<20)) }()
			time.Sleep(linePatience / 2)
			if want {
				others.Give(10 << 20)
			}
			time.Sleep(linePatience)
			synctest.Wait()
			if got := w.ans != nil; got != want {
				t.Errorf("answer %d is read: %v, %v", i, got, w.failed)
			}
		}
	})
}

// Who waits for a process to read writes in the order in which it came, lets those behind it begin, and
// holds up nobody when it gives up.
func TestWhatWaitsForAProcessKeepsItsOrder_E46(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 3 * maxOutgoing
		var begin inorder.Chain
		o, links := newOutlet(), make([]inorder.Link, n)
		gone, leave := context.WithCancel(t.Context())
		for i := range links {
			ctx := t.Context()
			if i == n/2 {
				ctx = gone
			}
			begin.Add(&links[i])
			links[i].When(func() {
				go func() { _ = o.put(ctx, nil, fmt.Appendln(nil, i), new(inorder.Link), &links[i]) }()
			})
		}
		synctest.Wait()
		var last inorder.Link
		if !begin.Add(&last) {
			t.Error("those who wait for the process hold up what is behind them")
		}
		leave()
		synctest.Wait()
		in, out := io.Pipe()
		go o.write(out)
		lines := bufio.NewScanner(in)
		for i := range n {
			if i == n/2 {
				continue
			}
			if lines.Scan(); lines.Text() != fmt.Sprint(i) {
				t.Fatalf("line %d is %s", i, lines.Text())
			}
		}
		o.shut()
		_ = in.Close()
	})
}
