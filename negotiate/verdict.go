package negotiate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpbridge/bridge/jsonrpc"
	"github.com/mcpbridge/bridge/mcp"
	"github.com/mcpbridge/bridge/rawjson"
)

// Peer asks one upstream on behalf of one principal.
type Peer interface {
	// Discover sends server/discover.
	Discover(ctx context.Context) Outcome
	// LegacyOffer asks a server that looks legacy what it is. It is zero when that
	// cannot be found out.
	LegacyOffer(ctx context.Context) Offer
}

// Offer is what a legacy server says of itself.
type Offer struct {
	Versions []string
	HTTPSSE  bool // it is reached only over HTTP+SSE, the transport of 2024-11-05
	// Refused is how it demands credentials for the answer; nil: it does not.
	Refused error
	// Late says that it has answered server/discover meanwhile as a modern one does: it speaks that era, too.
	Late bool
}

// Outcome is what server/discover came to: exactly one of Result, Error and
// Err is set.
type Outcome struct {
	Result []byte
	Error  *jsonrpc.Error
	Err    error
	// NotModern says that Err is evidence of a peer that does not speak the
	// modern era. Timeouts, refused credentials and server failures are not.
	NotModern bool
	// Silent says that the evidence is that it said nothing at all.
	Silent bool
	// Doubtful says that Err stands unless the peer answers initialize: there are legacy servers that fail, or end, at a
	// method that they do not know.
	Doubtful bool
}

// Verdict says what the upstream is.
type Verdict struct {
	Era Era
	// Versions are those that the upstream offers, in its order, as far as
	// they are known.
	Versions []string
	// HTTPSSE says that a legacy server is reached only over HTTP+SSE.
	HTTPSSE bool
	// Version is the modern version to speak with it; "" when there is none.
	Version string
	// Discover is the raw DiscoverResult, nil when there is none.
	Discover []byte
	// Err says why the upstream cannot be used, nil when it can. The cause of
	// a failed request is wrapped in it.
	Err error
	// Generation tells verdicts of one Prober apart: the same number is the same
	// verdict, served from the cache. 0 when none was reached.
	Generation uint64

	// Late says that a server which serves legacy clients was slow to say that it is a modern one as well. It is to be asked again
	// soon.
	Late bool

	ttl    time.Duration
	public bool
}

// Usable reports whether the bridge can serve legacy clients from this upstream.
func (v *Verdict) Usable() bool { return v.Err == nil }

// judge turns an outcome into a verdict; fallback may choose another version to speak. trusted reports whether the
// peer has proved to be none of the legacy era, when it fails.
func judge(ctx context.Context, peer Peer, fallback func([]byte) string, trusted func() bool) Verdict {
	doubtful := func(cause error) Verdict {
		if trusted() {
			return Verdict{Era: Unknown, Err: cause}
		}
		return judgeDoubtful(ctx, peer, cause)
	}
	out := peer.Discover(ctx)
	switch {
	case out.Result != nil:
		if v := judgeResult(out.Result, fallback); len(v.Versions) > 0 || len(out.Result) > maxDiscover {
			return v
		}
		return doubtful(errNoVersions) // whatever is asked of it, it may say yes
	case out.Doubtful:
		return doubtful(out.Err)
	case out.Error == nil && !out.NotModern:
		return Verdict{Era: Unknown, Err: out.Err}
	case out.Error == nil:
		v := judgeLegacy(ctx, peer, out.Err, out.Silent)
		if v.Era == Unknown && errors.Is(v.Err, errLate) {
			if out = peer.Discover(ctx); out.Result != nil {
				return judgeResult(out.Result, fallback)
			}
		}
		return v
	}
	if LegacyRefusal(out.Error.Code) {
		return judgeLegacy(ctx, peer, out.Error, false)
	}
	switch out.Error.Code {
	case mcp.CodeUnsupportedVersion:
		v := byVersions(rawjson.Get(out.Error.Data, "supported"), fallback)
		if v.Err == nil { // it refused even the version that it names
			v.Err = fmt.Errorf("the upstream refuses version %s, which it says it supports: %w", v.Version, out.Error)
		}
		return v
	case jsonrpc.CodeInternal:
		return doubtful(fmt.Errorf("the upstream failed to answer server/discover: %w", out.Error))
	}
	return Verdict{Era: Modern, Err: fmt.Errorf("the upstream refused server/discover: %w", out.Error)}
}

// LegacyRefusal reports whether a server that answers server/discover with this error code shows that it is of the legacy
// era: those refuse the unknown method with whatever they like but for the codes that are the modern era's own, and failures.
func LegacyRefusal(code int) bool {
	switch code {
	case mcp.CodeUnsupportedVersion, mcp.CodeHeaderMismatch, mcp.CodeMissingCapability, jsonrpc.CodeInternal:
		return false
	}
	return true
}

// NamesLegacy reports whether an answer to server/discover names versions, of which none but legacy ones: a result, or a refusal of
// the version.
func NamesLegacy(result []byte, refusal *jsonrpc.Error) bool {
	v := byVersions(Named(result, refusal), nil)
	return v.LegacyServer()
}

// Named returns the versions that an answer to server/discover names, a JSON array; nil: it names none.
func Named(result []byte, refusal *jsonrpc.Error) []byte {
	if refusal != nil && refusal.Code == mcp.CodeUnsupportedVersion {
		return rawjson.Get(refusal.Data, "supported")
	}
	return rawjson.Get(result, "supportedVersions")
}

// judgeDoubtful judges a failure that stands unless the peer says that it is a legacy server.
func judgeDoubtful(ctx context.Context, peer Peer, cause error) Verdict {
	v := judgeLegacy(ctx, peer, cause, false)
	if slices.ContainsFunc(v.Versions, func(v string) bool { return mcp.Version(v).IsLegacy() }) {
		return v
	}
	return Verdict{Era: Unknown, Err: cause}
}

func judgeLegacy(ctx context.Context, peer Peer, cause error, silent bool) Verdict {
	offer := peer.LegacyOffer(ctx)
	switch {
	case offer.Refused != nil: // there may be a server of any era behind that
		return Verdict{Era: Unknown, Err: offer.Refused}
	case offer.Late && len(offer.Versions) == 0:
		return Verdict{Era: Unknown, Err: errLate}
	case offer.Late: // those serve a client that waits
		return Verdict{Era: Legacy, Versions: offer.Versions, Err: errLate, Late: true}
	}
	v := Verdict{Era: Legacy, Versions: offer.Versions, HTTPSSE: offer.HTTPSSE}
	switch {
	case len(v.Versions) == 0 && !silent && ctx.Err() != nil:
		return Verdict{Era: Unknown, Err: fmt.Errorf("the upstream refused server/discover, and did not answer initialize in time: %w", ctx.Err())}
	case len(v.Versions) == 0:
		v.Err = fmt.Errorf("the upstream does not speak MCP %s (a wrong URL or command, or a server for older clients only): %w",
			mcp.V20260728, cause)
		return v
	}
	v.Err = legacyOnly(v.Versions)
	if v.HTTPSSE {
		v.Err = fmt.Errorf("the upstream speaks only HTTP+SSE, the transport of %s, the bridge needs a server that speaks %s; clients that know that transport can connect to it directly, and legacy clients be relayed to it (legacy-relay)",
			mcp.V20241105, mcp.V20260728)
	}
	return v
}

var errLate = errors.New("the upstream was slow to come up: it answered server/discover when the time for that was over")

func legacyOnly(versions []string) error {
	if slices.ContainsFunc(versions, func(v string) bool { return mcp.Version(v).IsDraft() }) { // I-12
		return fmt.Errorf("the upstream speaks a draft of %s that still begins with a handshake (it offers %s): the bridge cannot speak that, the server needs an update",
			mcp.V20260728, prose(versions))
	}
	return fmt.Errorf("the upstream is a legacy server: it offers %s, the bridge needs a server that speaks %s; legacy clients can connect to it directly, or be relayed to it (legacy-relay)",
		prose(versions), mcp.V20260728)
}

// maxDiscover bounds what a server says of itself, which all sessions keep, in bytes.
const maxDiscover = 1 << 20

var errNoVersions = errors.New("the upstream answered server/discover without supportedVersions")

func judgeResult(result []byte, fallback func([]byte) string) Verdict {
	if len(result) > maxDiscover {
		return Verdict{Era: Unknown, Err: fmt.Errorf("the upstream's answer to server/discover has %d bytes; the limit is %d", len(result), maxDiscover)}
	}
	versions := rawjson.Get(result, "supportedVersions")
	v := byVersions(versions, fallback)
	v.Discover = bytes.Clone(result) // which may be part of a longer message
	if ms, ok := rawjson.Int(rawjson.Get(result, "ttlMs")); ok && ms > 0 {
		v.ttl = time.Duration(min(ms, int64(24*time.Hour/time.Millisecond))) * time.Millisecond
	}
	scope, _ := rawjson.Text(rawjson.Get(result, "cacheScope"))
	v.public = scope == "public"
	return v
}

// byVersions reads the era off a list of versions and picks the one to speak
// . It is the list that decides, not that the server answered: a dual-era
// server may offer legacy versions only.
func byVersions(list []byte, fallback func([]byte) string) Verdict {
	versions := texts(list)
	v := Verdict{Versions: versions}
	legacy, modern := false, false
	for _, s := range versions {
		if mcp.Version(s).IsLegacy() {
			legacy = true
		} else {
			modern = true
		}
	}
	switch {
	case legacy && modern:
		v.Era = Dual
	case modern:
		v.Era = Modern
	case legacy:
		v.Era = Legacy
	}
	switch {
	case slices.Contains(versions, string(mcp.V20260728)):
		v.Version = string(mcp.V20260728)
		return v
	case fallback != nil && fallback(list) != "":
		v.Version = fallback(list)
		return v
	}
	if v.Era == Legacy {
		v.Err = legacyOnly(versions)
		return v
	}
	v.Err = fmt.Errorf("the upstream offers %s, the bridge speaks %s: there is no common version",
		prose(versions), mcp.V20260728)
	return v
}

const maxVersions = 32 // of a peer's list

// texts reads an array of version strings, bounded. What can be none is not there: the list
// is told to people, and in errors.
func texts(array []byte) []string {
	var all []string
	for e := range rawjson.Elements(array) {
		if s, ok := rawjson.Text(e); ok && mcp.Version(s).IsPlausible() && len(all) < maxVersions {
			all = append(all, s)
		}
	}
	return all
}

// maxProse bounds the list of versions in an error text, in bytes.
const maxProse = 200

// prose lists versions for a person.
func prose(versions []string) string {
	if len(versions) == 0 {
		return "no version"
	}
	s := strings.Join(versions, ", ")
	if len(s) > maxProse {
		s = s[:maxProse] + "…"
	}
	return s
}

// Proven is the era that a server has shown to be of. One that named no version
// is only not modern.
func (v *Verdict) Proven() Era {
	if v.Era == Legacy && len(v.Versions) == 0 {
		return Unknown
	}
	return v.Era
}
