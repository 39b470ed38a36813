package ask

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/mcpbridge/bridge/rawjson"
)

func text(params []byte, name string) string {
	s, _ := rawjson.Text(rawjson.Get(params, name))
	return s
}

// maxMessage bounds what a person gets to see of a server's message, in characters.
const maxMessage = 10_000

// shown is a server's message as far as it is shown.
func shown(message string) string {
	if utf8.RuneCountInString(message) <= maxMessage {
		return message
	}
	return string([]rune(message)[:maxMessage]) + "… (the rest is not shown)"
}

// errNoAddress is told where a server asks to visit what a person could misread.
var errNoAddress = errors.New("the server asks to visit something that is no plain web address")

// names reads hosts' names as browsers do; they may have underscores.
var names = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false))

// address returns the address of a visit as it is shown and followed: letters that other
// alphabets imitate are written in ASCII, both in the host's name and behind it.
func address(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
		return "", errNoAddress
	}
	host, err := names.ToASCII(u.Hostname())
	if net.ParseIP(u.Hostname()) != nil {
		host, err = u.Hostname(), nil
	}
	if err != nil || host == "" {
		return "", errNoAddress
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port := u.Port(); port != "" {
		host += ":" + port
	}
	u.Host, u.RawQuery = host, escaped(u.RawQuery)
	return u.String(), nil
}

// escaped writes what is no ASCII in a query as such; the rest stays as it is.
func escaped(query string) string {
	var b strings.Builder
	for i := range len(query) {
		if c := query[i]; c > ' ' && c < 0x7f {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
