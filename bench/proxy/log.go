package proxy

import (
	"io"
	"log"
)

// discard drops the proxy's messages about clients that went away; failures
// are counted by the load generator, which sees them as wrong answers.
var discard = log.New(io.Discard, "", 0)
