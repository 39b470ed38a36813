package session

import (
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mcpbridge/bridge/internal/rates"
)

// A newer token takes the place of the one that a session is bound to when the server is known
// to know it: after a call that it has accepted (Accepted), or, for who makes none and wants what
// is the owner's, because it was asked (Prove):
//
//	a call ──▶ the server's result ──▶ Accepted ──┐
//	                                              ├─▶ bind ──▶ genuine? ──▶ bound
//	what is the owner's ────────────▶ Prove ──────┘

// doubt is a token that the session was not bound to, and until when nobody is asked again.
type doubt struct {
	auth     string
	accepted bool // though the server had accepted it
	until    time.Time
}

// doubtFor is how long that is: each time costs the server some requests.
const doubtFor = 30 * time.Second

// of reports whether there is no use in asking about a token. That it has been accepted since
// may tell what could not be told before.
func (d *doubt) of(auth string, accepted bool) bool {
	return d != nil && d.auth == auth && (d.accepted || !accepted) && time.Now().Before(d.until)
}

// proofs is what bounds them: each costs the server up to four requests, and whoever knows a
// session's id can make up as many tokens as they like.
type proofs struct {
	under singleflight.Group // by session and token
	rate  *rates.Limiter
}

// How often somebody may have the server asked about tokens that it was not shown before: in one
// session, and in all. Its owner has a newer one every some minutes.
var (
	proofsOfSession = rates.Rate{PerSecond: 0.1, Burst: 3}
	proofsOfTenant  = rates.Rate{PerSecond: 5, Burst: 20}
)

func newProofs() *proofs {
	return &proofs{rate: rates.New(rates.Options{Session: proofsOfSession, Principal: proofsOfTenant})}
}

// may reports whether a tenant may have the server asked, and counts that. A stranger leaves
// others of the session their own.
func (p *proofs) may(session, tenant string) bool {
	_, ok := p.rate.Admit(rates.Sender{Session: session + " " + tenant, Principal: "tenant " + tenant}, 1)
	return ok
}
