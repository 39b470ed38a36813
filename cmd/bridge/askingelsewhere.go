package main

import (
	"net/http"

	"github.com/mcpbridge/bridge/ask/page"
	"github.com/mcpbridge/bridge/downstream"
	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/replica"
	"github.com/mcpbridge/bridge/legacy/web"
)

// pagesElsewhere has other replicas serve the pages of their questions, which are in their memory
// alone: each address of a page names its replica. The zero one knows no others.
type pagesElsewhere struct {
	replica *replica.Replica
	id      downstream.ReplicaID
	memory  *budget.Budget
}

// mark is what the addresses of this replica's pages end in.
func (p *pagesElsewhere) mark() string {
	if p.replica == nil {
		return ""
	}
	return p.id.String()
}

// serve has the replica that the address of a page names serve it. It returns false, and nothing
// was written, when that is this one, or has ended. What another replica passed on does not come here.
func (p *pagesElsewhere) serve(desk *page.Desk, w http.ResponseWriter, r *http.Request) bool {
	home, ok := downstream.ParseReplicaID(page.MarkOf(r.URL.Path))
	if !ok || p.replica == nil || home == p.id || !p.replica.Knows(r.Context(), home) {
		return false
	}
	held := budget.On(p.memory.Guest(web.Stranger(r.RemoteAddr)))
	defer held.Release()
	form, ok := desk.Body(w, r, &held)
	return !ok || p.replica.Forward(w, r, form, home)
}
