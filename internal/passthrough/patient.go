package passthrough

import (
	"net/http"
	"time"
)

// patience is how long a client may take for one piece of a response that is handed on
// as it comes: one that reads nothing must not hold the request at the server for ever.
const patience = time.Minute

// patient bounds the writes of a response. The server in front ends the bound with it.
type patient struct {
	http.ResponseWriter
	traffic *traffic
	began   time.Time // of the request
	until   time.Time
	hurried bool // what follows is the last
}

// hurry bounds what is written yet: nobody waits longer for a client that reads nothing of the end.
func (p *patient) hurry() {
	p.hurried = true
	p.traffic.bound(p.ResponseWriter, lastWords)
}

// Unwrap is for http.ResponseController.
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// Write implements http.ResponseWriter. The deadline is moved only when it is near.
func (p *patient) Write(part []byte) (int, error) {
	if now := time.Now(); !p.hurried && p.until.Sub(now) < patience/2 {
		p.until = p.traffic.bound(p.ResponseWriter, patience)
	}
	return p.ResponseWriter.Write(part)
}
