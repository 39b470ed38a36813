package redisstore

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
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

var parameters = []string{"prefix", "tls", "ca", "cert", "key", "sentinel-user", "sentinel-password"}

// parse reads a store's URL:
//
//	redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]             one server
//	rediss://…                                                 with TLS
//	redis+sentinel://…@HOST[:PORT],HOST…/NAME[/DATABASE]       the primary that Sentinels call NAME
//	redis+cluster://…@HOST[:PORT],HOST…                        a cluster
//
// Parameters: prefix of all keys (default "mcp-bridge:"); tls=true for Sentinels and
// clusters; ca, cert and key, files in PEM; sentinel-user and sentinel-password.
//
// Errors quote nothing of which it is unknown whether it is a part of a password: one that
// is not escaped looks like a host, a path or a parameter from there on.
func parse(text string) (option rueidis.ClientOption, prefix string, err error) {
	if !escaped(text) {
		return option, "", errors.New("a password in the store's URL must be percent-encoded: / is %2F, ? is %3F, # is %23, and behind the hosts, where none has to stand, @ is %40")
	}
	text, hosts := cutHosts(text)
	u, err := url.Parse(text)
	if err != nil { // which quotes the URL
		return option, "", errors.New("the store's URL can't be read: check it for characters that need escaping (%40 for @)")
	}
	scheme, known := schemes[u.Scheme]
	if !known || u.Opaque != "" {
		return option, "", errors.New("a store's URL begins with redis://, rediss://, redis+sentinel:// or redis+cluster://")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil { // which quotes it
		return option, "", errors.New("the parameters of the store's URL can't be read: check them for characters that need escaping (%25 for %, %3B for ;)")
	}
	for name := range query {
		if !slices.Contains(parameters, name) {
			return option, "", errors.New("a store's URL has the parameters " + strings.Join(parameters, ", ") + " only; & in a value is %26")
		}
	}
	list, err := addresses(hosts, scheme.port)
	if err != nil {
		return option, "", err
	}
	password, _ := u.User.Password()
	option = rueidis.ClientOption{
		InitAddress: list, Username: u.User.Username(), Password: password,
		ForceSingleClient: !scheme.cluster && !scheme.sentinel,
		Dialer:            net.Dialer{Timeout: dialTimeout}, ConnWriteTimeout: writeTimeout,
		CacheSizeEachConn: cacheBytes, ClientName: "mcp-bridge", ClientSetInfo: rueidis.DisableClientSetInfo,
		DialCtxFn:    new(demotions).dial,
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

// escaped reports whether what may be a user and a password, all that stands before the last @, has no character that ends
// it in a URL, and whether there is no fragment, which would be ignored with what else it hides.
func escaped(text string) bool {
	_, rest, _ := strings.Cut(text, "://")
	return !strings.ContainsAny(rest[:strings.LastIndex(rest, "@")+1], "/?#") && !strings.Contains(text, "#")
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

// addresses splits hosts at commas and gives each one a port. What is no host and no port may be a user and a password
// behind which the host was forgotten.
func addresses(hosts, port string) ([]string, error) {
	var list []string
	for host := range strings.SplitSeq(hosts, ",") {
		u := &url.URL{Host: host}
		name, own := u.Hostname(), u.Port()
		if name == "" {
			name = "localhost"
		}
		_, notIP := netip.ParseAddr(name)
		number, err := strconv.ParseUint(cmp.Or(own, port), 10, 16)
		if err != nil || number == 0 || notIP != nil && strings.ContainsAny(name, ":[]") {
			return nil, errors.New("a host of the store's URL is none: write HOST or HOST:PORT, after USER:PASSWORD@ if there is a password")
		}
		list = append(list, net.JoinHostPort(name, cmp.Or(own, port)))
	}
	return list, nil
}

func databaseOf(text string, cluster bool) (int, error) {
	if text == "" {
		return 0, nil
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < 0 {
		return 0, errors.New("what the store's URL has after the hosts is no number of a database")
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
