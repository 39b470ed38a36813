package subscriptions

import "github.com/mcpbridge/bridge/rawjson"

// maxAnnounced is how many bytes the params of an announcement may have that is passed on as it
// came. It is read once, and then kept by each session that hears it, until that one's client
// listens: of a longer one they hear what it is about, which is all that matters of it.
const maxAnnounced = 1 << 10

// listChanged returns the params of a word on a list as sessions hear them. They say nothing but
// _meta.
func listChanged(params []byte) []byte {
	if len(params) > maxAnnounced {
		return nil
	}
	return params
}

// updated returns the params of a word on a resource as a session hears them.
func updated(uri string, params []byte) []byte {
	if len(params) > maxAnnounced {
		return aboutURI(uri)
	}
	return params
}

func aboutURI(uri string) []byte { return append(rawjson.AppendQuote([]byte(`{"uri":`), uri), '}') }

// elicitationID returns which URL interaction an announcement is about.
func elicitationID(params []byte) string {
	id, _ := rawjson.Name(rawjson.Get(params, "elicitationId"))
	return id
}
