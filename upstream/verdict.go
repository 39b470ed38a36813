package upstream

import (
	"crypto/x509"
	"errors"

	"github.com/mcpbridge/bridge/negotiate"
)

// Refused returns the failure behind the verdict on a server that answers nobody
// without credentials, else nil. Such a server is there.
func Refused(v *negotiate.Verdict) *Failure {
	failure, ok := errors.AsType[*Failure](v.Err)
	if !ok || failure.Cause != Unauthorized {
		return nil
	}
	return failure
}

// Advice says why a server cannot be used, and what a person can do about it.
func Advice(v *negotiate.Verdict) string {
	text := v.Err.Error()
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](v.Err); unknown {
		text += " (upstream-tls.ca)"
	}
	return text
}
