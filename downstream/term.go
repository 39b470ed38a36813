package downstream

import "time"

// Term is how long the credentials last with which something was opened that outlives its request: a connection, a stream.
type Term struct {
	Ends time.Time // zero: unknown
	// Withdrawn reports whether they are refused by now, whatever their time. It does not wait for anybody; nil: nobody can tell.
	Withdrawn func() bool
}

// Over reports whether nothing may begin with them any more.
func (t *Term) Over() bool {
	return !t.Ends.IsZero() && !time.Now().Before(t.Ends) || t.Withdrawn != nil && t.Withdrawn()
}
