package view

import (
	"fmt"
	"hash/fnv"

	"github.com/mcpbridge/bridge/observe"
)

// ofOmission says why clients do not get to see an entry of a server's list.
func ofOmission(mount string, o *observe.Omission) diagnosis {
	return diagnosis{Who: "server", Grave: true, Text: "Clients are not offered " + line(o.Name) + ": " + long(o.Reason) + ". The fault is the server's.",
		Do:   "Have the server's author correct what it says of it in " + o.Method + "; until then clients do not see it",
		Link: "/server#" + anchor(mount, o.Method, o.Name), About: "its entry"}
}

// anchor names an entry that is not offered on the page of servers. What peers write is
// no part of it.
func anchor(mount, method, name string) string {
	sum := fnv.New64a()
	_, _ = fmt.Fprintf(sum, "%q %q %q", mount, method, name)
	return fmt.Sprintf("left-%016x", sum.Sum64())
}

// hidden says of the first entries that clients do not get to see why.
func hidden(m *Mount) (said []diagnosis) {
	for i := range m.Omissions[:min(len(m.Omissions), mostHidden)] {
		said = append(said, ofOmission(m.Path, &m.Omissions[i]))
	}
	return said
}

// hiddenFrom is hidden for the clients of the mount at a path.
func (v *View) hiddenFrom(path string) []diagnosis {
	for _, m := range v.opt.Look() {
		if m.Path == path {
			return hidden(&m)
		}
	}
	return nil
}
