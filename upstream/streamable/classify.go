package streamable

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/mcpbridge/bridge/internal/http1"
	"github.com/mcpbridge/bridge/upstream"
)

// classify turns the error of a transport that brought no response head into
// a Failure. sent says whether something of the request left: before that nothing can have been executed.
func classify(ctx context.Context, origin string, err error, sent bool) *upstream.Failure {
	f := cause(ctx, origin, err, sent)
	f.Sent = sent
	return f
}

func cause(ctx context.Context, origin string, err error, sent bool) *upstream.Failure {
	if errors.Is(err, http1.ErrHTTP2) {
		return upstream.Fail(upstream.BadResponse, err, "the upstream %s speaks only HTTP/2; the bridge speaks HTTP/1.1 to servers, and so must this one", origin)
	}
	if f := asTLS(origin, err); f != nil {
		return f
	}
	if f := upstream.Interrupted(ctx, sent); f != nil {
		return f
	}
	if !sent {
		return upstream.Fail(upstream.Unreachable, err, "the upstream %s cannot be reached: %s", origin, dialReason(err))
	}
	if isTimeout(err) {
		return upstream.Fail(upstream.Timeout, err, "the upstream %s did not answer in time", origin)
	}
	if f := asMalformed(origin, err); f != nil {
		return f
	}
	return upstream.Fail(upstream.Lost, err, "the connection to the upstream %s was lost before it answered", origin)
}

// asMalformed recognises responses that cannot be read: what sent them was reached, and is not lost.
func asMalformed(origin string, err error) *upstream.Failure {
	if !errors.Is(err, http1.ErrMalformed) {
		return nil
	}
	return upstream.Fail(upstream.BadResponse, err, "the upstream %s does not answer in HTTP/1.1 (%s)", origin, err)
}

func isTimeout(err error) bool {
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout()
}

// dialReason says in a few words why no connection was made.
func dialReason(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "the name " + upstream.Clip(dns.Name) + " is not known to DNS"
		}
		return "the name " + upstream.Clip(dns.Name) + " could not be looked up"
	}
	op, _ := errors.AsType[*net.OpError](err)
	switch {
	case op != nil && op.Op == "proxyconnect" && errors.Is(err, syscall.ECONNREFUSED):
		return "the proxy refuses connections; is it running, and is HTTPS_PROXY or HTTP_PROXY right?"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused; is the server running and the port right?"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route to it"
	case errors.Is(err, os.ErrDeadlineExceeded), isTimeout(err):
		return "it did not accept the connection in time"
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "it took the connection and closed it at once"
	case errors.Is(err, os.ErrNotExist):
		return "the socket does not exist"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "this process has too many files open"
	}
	return upstream.Clip(err.Error())
}

// asTLS recognises failures of the handshake; nothing was sent before it.
func asTLS(origin string, err error) *upstream.Failure {
	reason := tlsReason(err)
	if reason == "" {
		return nil
	}
	return &upstream.Failure{Cause: upstream.TLS, Err: err, Detail: fmt.Sprintf("no secure connection to the upstream %s: %s", origin, reason)}
}

func tlsReason(err error) string {
	if e, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		issuer := ""
		if e.Cert != nil {
			issuer = fmt.Sprintf(" (%s)", upstream.Clip(e.Cert.Issuer.String()))
		}
		return "its certificate is signed by an unknown authority" + issuer + "; add that authority to the CA file configured for this upstream"
	}
	if e, ok := errors.AsType[x509.HostnameError](err); ok {
		return "its certificate is not valid for " + upstream.Clip(e.Host) + "; use a name that the certificate lists"
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if e.Reason == x509.Expired {
			return "its certificate has expired or is not yet valid (check this machine's clock too)"
		}
		return "its certificate is not valid: " + upstream.Clip(e.Error())
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "the port does not speak TLS; perhaps the URL should begin with http://"
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "its certificate cannot be verified: " + upstream.Clip(e.Err.Error())
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return "the port speaks plain HTTP; the URL should begin with http://"
	case strings.Contains(text, "remote error: tls: "):
		return "the server refused the handshake (" + upstream.Clip(text) + "); it may require a client certificate or another TLS version"
	case strings.HasPrefix(text, "tls: "), strings.HasPrefix(text, "net/http: TLS handshake timeout"):
		return upstream.Clip(text)
	}
	return ""
}
