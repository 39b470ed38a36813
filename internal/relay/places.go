package relay

import (
	"fmt"

	"github.com/mcpbridge/bridge/internal/budget"
	"github.com/mcpbridge/bridge/internal/fault"
)

// Places bounds how many processes serve one session each.
type Places struct{ *budget.Places }

// NewPlaces returns so many places.
func NewPlaces(size int) *Places { return &Places{budget.NewPlaces(size)} }

// Take takes a place for a tenant, "" when nobody knows whose it is; free gives it back.
func (p *Places) Take(tenant string) (free func(), err error) {
	free, others := p.Places.Take(tenant)
	if free != nil {
		return free, nil
	}
	text := "all %d processes of this server are in use (limits.children); try again later"
	if others {
		text = "the last of the %d processes of this server are for others (limits.children); try again later"
	}
	return nil, fault.Internal(fmt.Sprintf(text, p.Size()), fault.Reason("limit"), fault.Limit("limits.children"))
}
