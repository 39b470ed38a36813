package resource

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/wellknown"
	"github.com/mcpbridge/bridge/rawjson"
)

// RelayOptions say which server's metadata are the bridge's own, too. All but Public
// are required.
type RelayOptions struct {
	// Server is the URL of the server's endpoint.
	Server string
	// Path is that of the bridge's endpoint, Public the address under which clients know
	// it, or only its origin; "": what they say in Host.
	Path, Public string
	// Server's metadata are read with Servers, those of authorization servers with Issuers.
	Servers, Issuers *http.Client
	// Admit reports whether the page that makes a request may, and lets it read the answer; otherwise it
	// has answered. It is asked about what is handed on to the server; nil: any page may.
	Admit func(http.ResponseWriter, *http.Request) bool
	// Party says whose share of what is scarce a request takes; nil: nobody's.
	Party func(*http.Request) string
	// Memory is charged for what clients post, to their party; nil: nothing is.
	Memory *budget.Budget
	Log    zerolog.Logger
}

// Relay returns the resource of a bridge whose clients' tokens are for the server
// behind it. It says of itself what the server says, under its own name.
func Relay(opt RelayOptions) *Resource {
	opt.Public = PublicAddress(opt.Public, opt.Path)
	servers := *opt.Servers
	servers.CheckRedirect = sameOrigin
	opt.Servers = &servers
	if opt.Admit == nil {
		opt.Admit = func(http.ResponseWriter, *http.Request) bool { return true }
	}
	if opt.Party == nil {
		opt.Party = func(*http.Request) string { return "" }
	}
	return &Resource{public: opt.Public, path: opt.Path, source: &relayed{RelayOptions: opt}}
}

// relayed reads the metadata of a server, and keeps them for a moment.
type relayed struct {
	RelayOptions
	told    atomic.Bool // that the names differ
	cache   sides[found]
	issuers sides[json.RawMessage]

	mu    sync.Mutex
	named string // what challenges of the server name as their place; "" for none
	to    asker  // to whom
}

// asker is who was challenged: what is named to the later ones counts for more. To who has credentials the server may name the place of
// its tenant, and others are to sign in as who has none is told.
type asker uint8

const (
	withCredentials asker = iota
	withNone
	theBridge
)

// found is a document about the server, nil where there is none.
type found struct {
	document map[string]json.RawMessage
	foreign  bool // it was read at another origin than the server's
}

// learn looks at challenges of the server, which say where its metadata are. Whoever
// is challenged wants those of now: perhaps the server has another issuer since. But anybody can be
// challenged, as often as he likes.
func (s *Resource) learn(r *http.Request, challenges []string) {
	relayed, ok := s.source.(*relayed)
	if !ok {
		return
	}
	at := wellknown.Value(challenges, metadataParameter)
	switch guest := r.Header.Get("Authorization") == ""; {
	case at != "" && guest:
		relayed.name(at, withNone)
	case at != "":
		relayed.name(at, withCredentials)
	case guest && slices.ContainsFunc(challenges, isBearer):
		relayed.name("", withNone)
	}
	relayed.cache.forget()
	relayed.issuers.forget()
}

// isBearer reports whether a challenge is one to sign in.
func isBearer(challenge string) bool {
	scheme, _, _ := strings.Cut(challenge, " ")
	return strings.EqualFold(scheme, "Bearer")
}

// Learn looks at challenges that the server gave the bridge itself. What they name counts
// for all.
func (s *Resource) Learn(challenges []string) {
	relayed, ok := s.source.(*relayed)
	if at := wellknown.Value(challenges, metadataParameter); ok && at != "" {
		relayed.name(at, theBridge)
	}
}

// name notes where the server says that its metadata are, and to whom. That it names no place takes back only what counts for
// less: it does not say so with every challenge.
func (s *relayed) name(at string, to asker) {
	s.mu.Lock()
	counts := to > s.to || to == s.to && at != ""
	moved := counts && s.named != at
	if counts {
		s.named, s.to = at, to
	}
	s.mu.Unlock()
	if moved {
		s.cache.drop()
		s.issuers.drop()
	}
}

// place is where the server says that they are, "" if it does not.
func (s *relayed) place() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.named
}

// describe implements source.
func (s *relayed) describe(r *http.Request, own string) (map[string]json.RawMessage, error) {
	document, err := s.document(r.Context(), own)
	if document == nil || err != nil {
		return nil, err
	}
	theirs, _ := rawjson.Text(document["resource"])
	s.tell(theirs, own)
	if wellknown.Names(theirs, own) || !wellknown.Names(theirs, s.Server) {
		return document, nil // right as it is, or somebody else's: then clients must see that
	}
	document = with(document, "resource", own)
	delete(document, "signed_metadata") // which is about the server's own name
	return document, nil
}

// document returns what the server says of itself to whoever knows the bridge by a name. What
// stands elsewhere must be about the server, or about the bridge as who has taken its name: it
// is somebody else's affair otherwise, and not for the eyes of who asks the bridge.
func (s *relayed) document(ctx context.Context, own string) (map[string]json.RawMessage, error) {
	ours := s.ours(own)
	all, err := s.cache.of(ours).get(ctx, func(ctx context.Context) (found, error) { return s.read(ctx, ours) })
	if err != nil {
		return nil, err
	}
	if theirs, _ := rawjson.Text(all.document["resource"]); all.foreign && !wellknown.Names(theirs, s.Server) && !wellknown.Names(theirs, own) {
		return nil, errForeign
	}
	return all.document, nil
}

// errForeign tells nothing of what is at a place that a server names: who asks the bridge may not
// be able to ask there.
var errForeign = errors.New("the MCP server names another place for its metadata, at which none of its own can be read")

// tell says once that tokens may be for nobody.
func (s *relayed) tell(theirs, own string) {
	if wellknown.Names(theirs, own) || s.told.Swap(true) {
		return
	}
	s.Log.Warn().Str("clients", own).Str("server", theirs).Msg("clients sign in under another name than the server's: it must not look for whom their tokens are. " +
		"Else bring the bridge under the server's public name and set public-url, or have it sign in itself with auth.mode agent or terminate")
}

// read asks the server, and nobody else unless its own challenge says so: where the
// bridge has taken the server's name, that would be the bridge again.
func (s *relayed) read(ctx context.Context, ours bool) (found, error) {
	for _, at := range s.places(ours) {
		var document map[string]json.RawMessage
		status, err := wellknown.Fetch(ctx, s.Servers, at, &document)
		foreign := !wellknown.SameOrigin(at, s.Server)
		switch {
		case status >= 400 && status < 500:
			continue
		case err != nil && foreign:
			return found{}, errForeign
		case err != nil:
			return found{}, fmt.Errorf("the MCP server's metadata cannot be read: %s", wellknown.Reason(err))
		}
		return found{wellknown.Members(document), foreign}, nil
	}
	return found{}, nil
}

// ours reports whether the place that the server's challenges name is at the name by which a
// client knows the bridge: then it may be the bridge.
func (s *relayed) ours(own string) bool {
	named := s.place()
	return named != "" && strings.EqualFold(hostOf(named), hostOf(own))
}

func (s *relayed) places(ours bool) []string {
	named := s.place()
	u, err := url.Parse(named)
	if named == "" || err != nil || !strings.HasPrefix(u.RequestURI(), "/") {
		return wellknown.ResourcePlaces("", s.Server)
	}
	origin := wellknown.Origin(s.Server)
	at := wellknown.ResourcePlaces(origin+u.RequestURI(), s.Server)
	if u.Scheme == "https" && !ours && !wellknown.SameOrigin(named, origin) && wellknown.ResourcePlace(s.Server, named) == nil {
		at = append(at, named)
	}
	return at
}

// issuer implements source. A server without metadata of its own is its own
// authorization server, as 2025-03-26 has it.
func (s *relayed) issuer(r *http.Request) (json.RawMessage, error) {
	own := s.own(r)
	document, err := s.document(r.Context(), own)
	if err != nil {
		return nil, err
	}
	return s.issuers.of(s.ours(own)).get(r.Context(), func(ctx context.Context) (json.RawMessage, error) {
		issuer := wellknown.Origin(s.Server)
		if named := texts(document["authorization_servers"]); len(named) > 0 {
			issuer = named[0]
		}
		if err := wellknown.From(s.Server, issuer); err != nil {
			return nil, fmt.Errorf("the authorization server cannot be asked: %w", err)
		}
		return readIssuer(ctx, s.Issuers, issuer)
	})
}

// readIssuer returns the metadata of an authorization server as they are; nil where
// there are none.
func readIssuer(ctx context.Context, client *http.Client, issuer string) (json.RawMessage, error) {
	if err := wellknown.Secure(issuer); err != nil {
		return nil, fmt.Errorf("the authorization server cannot be asked: %w", err)
	}
	for _, at := range wellknown.IssuerPlaces(issuer) {
		var document json.RawMessage
		status, err := wellknown.Fetch(ctx, client, at, &document)
		switch {
		case status >= 400 && status < 500:
			continue
		case err != nil:
			return nil, fmt.Errorf("the authorization server cannot be asked: %s", wellknown.Reason(err))
		}
		if rawjson.Validate(document) != nil || member(document, "issuer") != issuer {
			return nil, fmt.Errorf("the authorization server's metadata name another issuer")
		}
		return bytes.TrimSpace(document), nil
	}
	return nil, nil
}

func (s *relayed) close() {
	s.Servers.CloseIdleConnections()
	s.Issuers.CloseIdleConnections()
}

// sameOrigin keeps the search for a server's metadata at that server.
func sameOrigin(r *http.Request, via []*http.Request) error {
	if len(via) > 5 || r.URL.Host != via[0].URL.Host || r.URL.Scheme != via[0].URL.Scheme {
		return http.ErrUseLastResponse
	}
	return nil
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// own is how a client knows the endpoint.
func (s *relayed) own(r *http.Request) string {
	return (&Resource{public: s.Public, path: s.Path}).address(r, s.Path)
}

// Bounds on asking for metadata.
const (
	readTimeout = 10 * time.Second
	keepFound   = time.Minute
	keepFailure = 5 * time.Second
)
