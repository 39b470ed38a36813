package call

import (
	"math"
	"time"
)

// How long a kind of question is switched off: for good when the client said that it has
// no such method, else for so many times what it was given to answer.
const (
	ForGood  = time.Duration(math.MaxInt64)
	restOver = 6
)
