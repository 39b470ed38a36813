package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/mcpbridge/bridge/internal/smallfile"
)

const (
	defaultPrefix = "mcp-bridge:"
	dialTimeout   = 3 * time.Second
	writeTimeout  = 5 * time.Second // after which a connection without a sign of life is given up
	cacheBytes    = 32 << 20        // of session records, for each connection
)

// schemes maps what a URL begins with to the port of its servers and what kind they are.
var schemes = map[string]struct {
	port              string
	tls               bool
	sentinel, cluster bool
}{
	"redis":          {port: "6379"},
	"rediss":         {port: "6379", tls: true},
	"redis+sentinel": {port: "26379", sentinel: true},
	"redis+cluster":  {port: "6379", cluster: true},
}

// parse reads a store's URL:
//
//	redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]             one server
//	rediss://…                                                 with TLS
//	redis+sentinel://…@HOST[:PORT],HOST…/NAME[/DATABASE]       the primary that Sentinels call NAME
//	redis+cluster://…@HOST[:PORT],HOST…                        a cluster
//
// Parameters: prefix of all keys (default "mcp-bridge:"); tls=true for Sentinels and
// clusters; ca, cert and key, files in PEM; sentinel-user and sentinel-password.
func parse(text string) (option rueidis.ClientOption, prefix string, err error) {
	text, hosts := cutHosts(text)
	u, err := url.Parse(text)
	if err != nil { // which quotes the URL
		return option, "", errors.New("the store's URL can't be read: check it for characters that need escaping (%40 for @)")
	}
	scheme, known := schemes[u.Scheme]
	if !known {
		return option, "", fmt.Errorf("a store's URL does not begin with %q", u.Scheme)
	}
	query := u.Query()
	for name := range query {
		if !strings.Contains(" prefix tls ca cert key sentinel-user sentinel-password ", " "+name+" ") {
			return option, "", fmt.Errorf("a store's URL has no parameter %q", name)
		}
	}
	password, _ := u.User.Password()
	option = rueidis.ClientOption{
		InitAddress: addresses(hosts, scheme.port), Username: u.User.Username(), Password: password,
		ForceSingleClient: !scheme.cluster && !scheme.sentinel,
		Dialer:            net.Dialer{Timeout: dialTimeout}, ConnWriteTimeout: writeTimeout,
		CacheSizeEachConn: cacheBytes, ClientName: "mcp-bridge", ClientSetInfo: rueidis.DisableClientSetInfo,
		DialCtxFn:    dial,
		DisableRetry: true, // who asks knows better whether it may wait
		// One connection: what several calls ask of the store goes out, and comes back, together.
		PipelineMultiplex: -1,
	}
	database := strings.Trim(u.Path, "/")
	if scheme.sentinel {
		option.Sentinel.MasterSet, database, _ = strings.Cut(database, "/")
		option.Sentinel.Username, option.Sentinel.Password = query.Get("sentinel-user"), query.Get("sentinel-password")
		if option.Sentinel.MasterSet == "" {
			return option, "", errors.New("a redis+sentinel URL names the primary: redis+sentinel://HOST/NAME")
		}
	}
	if option.SelectDB, err = databaseOf(database, scheme.cluster); err != nil {
		return option, "", err
	}
	if scheme.tls || query.Get("tls") == "true" {
		if option.TLSConfig, err = tlsConfig(query); err != nil {
			return option, "", err
		}
		option.Sentinel.TLSConfig = option.TLSConfig
	}
	prefix = defaultPrefix
	if query.Has("prefix") {
		prefix = query.Get("prefix")
	}
	if strings.ContainsAny(prefix, "{}") {
		return option, "", errors.New("the prefix of a store's keys has no braces: they name the slot in a cluster")
	}
	return option, prefix, nil
}

// cutHosts takes the hosts out of a URL: a list of them is none to package net/url.
func cutHosts(text string) (rest, hosts string) {
	scheme, rest, _ := strings.Cut(text, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	begin := strings.LastIndex(rest[:end], "@") + 1
	return scheme + "://" + rest[:begin] + rest[end:], rest[begin:end]
}

// addresses splits hosts at commas and gives each one a port.
func addresses(hosts, port string) []string {
	var list []string
	for host := range strings.SplitSeq(hosts, ",") {
		if u := (&url.URL{Host: host}); u.Port() == "" {
			name := u.Hostname()
			if name == "" {
				name = "localhost"
			}
			host = net.JoinHostPort(name, port)
		}
		list = append(list, host)
	}
	return list
}

func databaseOf(text string, cluster bool) (int, error) {
	if text == "" {
		return 0, nil
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < 0 {
		return 0, fmt.Errorf("%q is no number of a database", text)
	}
	if cluster && number > 0 {
		return 0, errors.New("a cluster has database 0 only")
	}
	return number, nil
}

func tlsConfig(query url.Values) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := query.Get("ca"); file != "" {
		pem, err := smallfile.Read(file)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate", file)
		}
	}
	if cert, key := query.Get("cert"), query.Get("key"); cert != "" || key != "" {
		pair, err := smallfile.Pair(cert, key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// inSlots reports that keys of different sessions may be on different servers.
func inSlots(option *rueidis.ClientOption) bool {
	return !option.ForceSingleClient && option.Sentinel.MasterSet == ""
}
