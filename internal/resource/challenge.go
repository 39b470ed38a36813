package resource

import (
	"net/http"

	"github.com/mcpbridge/bridge/internal/wellknown"
)

// Challenge returns the challenges of a response with the bridge's metadata in the
// place of the server's (H.3). Every other byte stays as it is.
func (s *Resource) Challenge(r *http.Request, challenges []string) []string {
	if s.Checks() {
		return challenges // which are the endpoint's own
	}
	s.learn(r, challenges)
	own := metadataAddress(s.address(r, r.URL.Path))
	var out []string
	for i, value := range challenges {
		if from, to, found := wellknown.Parameter(value, metadataParameter); found {
			if out == nil {
				out = append(out, challenges...)
			}
			out[i] = value[:from] + `"` + own + `"` + value[to:]
		}
	}
	if out == nil {
		return challenges
	}
	return out
}

const metadataParameter = "resource_metadata"
