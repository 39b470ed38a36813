package http1

import "net/http"

// DefaultTransport returns a transport of one's own that is what http.DefaultTransport is, but speaks
// HTTP/1.1 only, as the bridge does with servers, keeps idle connections accordingly, and reads heads of
// responses of at most MaxHead bytes.
func DefaultTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = nil // offers HTTP/2
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.MaxIdleConnsPerHost = 16
	t.MaxResponseHeaderBytes = MaxHead
	return t
}
