package fleet

import (
	"net/http"
	"strings"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/clip"
	"github.com/mcpbridge/bridge/internal/logfield"
	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/legacy/web"
)

// nothing answers a request to a path at which there is no endpoint. Most often its client was given an address that
// is spelled a little wrongly, which is not served: sessions, and the metadata that name the endpoint, are bound to its
// path as it is written. Of the endpoints only the one that was meant is named.
func (f *Fleet) nothing(w http.ResponseWriter, r *http.Request) {
	path := clip.Line(logfield.PathOf(r))
	text := "there is no endpoint at " + path
	line := f.strange.WithLevel(levelOf(r.URL.Path)).Str(logfield.Path, path).Str(logfield.HTTPMethod, r.Method).Str(logfield.Remote, r.RemoteAddr)
	if near := f.table.Load().near(r.URL.Path); near != "" {
		text += "; the endpoint is " + near + ", spelled exactly so"
		line.Str("endpoint", near)
	} else {
		text += "; look at the path of the address in the client's settings"
	}
	line.Msg("a request came to a path at which there is no endpoint")
	web.WriteError(w, http.StatusNotFound, "", jsonrpc.CodeInvalidRequest, text)
}

// levelOf says at which level the log tells of a request to a path at which nothing is. Where clients and browsers look
// unasked nothing is wrong.
func levelOf(path string) zerolog.Level {
	if strings.HasPrefix(path, "/.well-known/") || path == "/favicon.ico" {
		return zerolog.DebugLevel
	}
	return zerolog.InfoLevel
}

// near returns the path at which newcomers find something and that differs from another one only in slashes at the end
// or in case; "": there is none.
func (t *table) near(path string) (found string) {
	path = strings.TrimRight(path, "/")
	for at, e := range t.entries {
		switch {
		case e.present.handler == nil || !strings.EqualFold(at, path):
		case at == path:
			return at
		case found == "" || at < found:
			found = at
		}
	}
	return found
}
