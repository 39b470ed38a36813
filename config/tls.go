package config

// ServerTLS is the listener's certificate.
type ServerTLS struct {
	// A file with the certificate chain, PEM.
	Cert string `key:"cert"`
	// A file with the private key of the certificate, PEM.
	Key string `key:"key"`
}

// ClientTLS is how the bridge and an upstream know each other.
type ClientTLS struct {
	// A file with the certificates to trust besides the system's, PEM.
	CA string `key:"ca"`
	// A file with the certificates to trust instead of the system's, PEM.
	CAOnly string `key:"ca-only"`
	// A file with the certificate that the bridge shows the server, PEM.
	Cert string `key:"cert"`
	// A file with the private key of that certificate, PEM.
	Key string `key:"key"`
	// The name to expect in the server's certificate. Empty: the host of the URL.
	ServerName string `key:"server-name"`
}
