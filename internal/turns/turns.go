// Package turns is a fair queue, and the limit on concurrency towards a server: it admits work
// by whose it is, not by which connection brings it. There are so many places, and who
// finds none waits for its turn.
//
//	Enter ──▶ a place, if its tenant leaves as many as it has ──▶ Leave
//	   └────▶ waits ──▶ its tenant's turn, within that its session's ──┘
//
// A tenant is a principal, or the address of clients without one, or a session where not
// even that is known. It may have no more
// places than are free for others: one that floods the bridge alone gets half of them,
// of two each gets a third. So whoever wants little finds a place at once, whatever
// others want.
//
// Where work is of different sizes, such as bytes, one enters with so many places. Whose turn
// it is gets them all once there is one for it, so that nobody small goes past it for good:
// more places may be taken than there are, by what one enters with at most.
package turns

import (
	"container/list"
	"context"
	"sync"

	"github.com/mcpbridge/bridge/internal/inorder"
)

// Who wants a place. Session tells the sessions of a principal apart; it is any
// comparable value, nil for work of no session.
type Who struct {
	Principal string
	Session   any
}

// tenant is whose places are counted together: where nobody knows whose sessions are
// whose, each stands for itself.
func (w Who) tenant() Who {
	if w.Principal != "" {
		w.Session = nil
	}
	return w
}

// Queue is a number of places and who waits for them. It is safe for concurrent use. A
// nil Queue has a place for everybody.
type Queue struct {
	mu      sync.Mutex
	free    int             // below zero: by so many more were taken
	tenants map[Who]*tenant // who has places, or waits
	waiting list.List       // of *tenant: those that wait, in the order of their turns
	spare   *tenant         // the last one that went, for the next that comes
}

// tenant is guarded by the queue's lock.
type tenant struct {
	who   Who
	used  int
	turn  *list.Element // in waiting; nil while nobody waits
	lines list.List     // of *line: its sessions that wait, in the order of their turns
	of    map[any]*line // the same by their sessions; nil until one waits
}

// line is a session of a tenant, and its work that waits, in the order in which it came.
type line struct {
	session any
	place   *list.Element // in lines
	work    list.List     // of *entry
}

// entry is work that waits.
type entry struct {
	turn   chan struct{} // closed with its turn
	places int
}

// New returns a queue for so many places.
func New(places int) *Queue {
	return &Queue{free: places, tenants: make(map[Who]*tenant)}
}

// Enter takes a place, if need be after waiting for one, or returns ctx's error. Whoever
// got one must Leave. waited says that time has passed.
func (q *Queue) Enter(ctx context.Context, who Who) (waited bool, err error) {
	return q.enter(ctx, who, 1, nil)
}

// EnterWith is Enter for so many places at once, which are to be left with LeaveWith.
func (q *Queue) EnterWith(ctx context.Context, who Who, places int) (waited bool, err error) {
	return q.enter(ctx, who, places, nil)
}

// EnterPassing is Enter for work that has a place in another order, too: it passes there when it has to wait, once
// it stands in its line here.
func (q *Queue) EnterPassing(ctx context.Context, who Who, link *inorder.Link) (waited bool, err error) {
	return q.enter(ctx, who, 1, link)
}

func (q *Queue) enter(ctx context.Context, who Who, places int, link *inorder.Link) (waited bool, err error) {
	if q == nil {
		return false, nil
	}
	q.mu.Lock()
	p := q.tenantLocked(who.tenant())
	if p.turn == nil && p.used < q.free {
		q.takeLocked(p, places)
		q.mu.Unlock()
		return false, nil
	}
	e := &entry{turn: make(chan struct{}), places: places}
	l, at := q.lineUpLocked(p, who.Session, e)
	q.mu.Unlock()
	link.Pass()
	select {
	case <-e.turn:
		return true, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-e.turn: // just now
		q.giveLocked(p, places)
	default:
		l.work.Remove(at)
		q.tidyLocked(p, l)
		q.forgetLocked(p)
	}
	return true, ctx.Err()
}

// TryEnter takes a place if there is one at once. Whoever got one must Leave.
func (q *Queue) TryEnter(who Who) bool {
	if q == nil {
		return true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.tenantLocked(who.tenant())
	if p.turn == nil && p.used < q.free {
		q.takeLocked(p, 1)
		return true
	}
	q.forgetLocked(p)
	return false
}

// Leave gives a place back.
func (q *Queue) Leave(who Who) { q.LeaveWith(who, 1) }

// LeaveWith gives back what EnterWith took.
func (q *Queue) LeaveWith(who Who, places int) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.giveLocked(q.tenants[who.tenant()], places)
}

// tenantLocked finds or makes a tenant.
func (q *Queue) tenantLocked(who Who) *tenant {
	p := q.tenants[who]
	if p == nil {
		if p = q.spare; p == nil {
			p = new(tenant)
		}
		q.spare, p.who = nil, who
		q.tenants[who] = p
	}
	return p
}

// forgetLocked takes a tenant out that neither has a place nor waits.
func (q *Queue) forgetLocked(p *tenant) {
	if p.used == 0 && p.turn == nil {
		delete(q.tenants, p.who)
		p.who = Who{}
		q.spare = p
	}
}

func (q *Queue) takeLocked(p *tenant, places int) {
	p.used += places
	q.free -= places
}

func (q *Queue) giveLocked(p *tenant, places int) {
	p.used -= places
	q.free += places
	q.admitLocked()
	q.forgetLocked(p)
}

// lineUpLocked puts work at the end of its session's line.
func (q *Queue) lineUpLocked(p *tenant, session any, e *entry) (*line, *list.Element) {
	if p.turn == nil {
		p.turn = q.waiting.PushBack(p)
	}
	l := p.of[session]
	if l == nil {
		l = &line{session: session}
		l.place = p.lines.PushBack(l)
		if p.of == nil {
			p.of = make(map[any]*line)
		}
		p.of[session] = l
	}
	return l, l.work.PushBack(e)
}

// admitLocked gives free places to those whose turn it is. A tenant that would have more
// than it leaves is passed over.
func (q *Queue) admitLocked() {
	for passed := 0; q.free > 0 && passed < q.waiting.Len(); {
		p := q.waiting.Front().Value.(*tenant)
		q.waiting.MoveToBack(p.turn)
		if p.used >= q.free {
			passed++
			continue
		}
		passed = 0
		l := p.lines.Front().Value.(*line)
		p.lines.MoveToBack(l.place)
		e := l.work.Remove(l.work.Front()).(*entry)
		q.takeLocked(p, e.places)
		close(e.turn)
		q.tidyLocked(p, l)
	}
}

// tidyLocked takes a line out in which nobody waits, and a tenant without one.
func (q *Queue) tidyLocked(p *tenant, l *line) {
	if l.work.Len() > 0 {
		return
	}
	p.lines.Remove(l.place)
	delete(p.of, l.session)
	if p.lines.Len() == 0 {
		q.waiting.Remove(p.turn)
		p.turn = nil
	}
}
