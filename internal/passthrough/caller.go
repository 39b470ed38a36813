package passthrough

import (
	"net"
	"net/http"
	"strconv"

	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// caller names who wants log messages: two requests that have one name are not kept
// apart (C-8). Clients with the same credentials at one address are one; clients without
// any are one only on one connection, since anybody can call himself what others do.
func (p *Process) caller(r *http.Request, meta []byte) string {
	host, port, err := net.SplitHostPort(r.RemoteAddr)
	info := string(rawjson.Get(meta, mcp.MetaClientInfo))
	switch authorization := r.Header.Get("Authorization"); {
	case authorization != "":
		return "client " + host + "\x00" + authorization + "\x00" + info
	case err != nil || port == "0" || r.Header.Get("Via") != "": // a proxy's connection is of many
		return "request " + strconv.FormatUint(p.serial.Add(1), 10)
	}
	return "peer " + r.RemoteAddr + "\x00" + info
}
