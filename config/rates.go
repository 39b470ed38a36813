package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// spans are the times that a rate may be about.
var spans = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}

// ParseRate reads a rate like 20/s, 600/m or 1000/h: how many requests may come in that
// time, and at once; off is 0 of them.
func ParseRate(text string) (perSecond float64, burst int, err error) {
	if text == "off" {
		return 0, 0, nil
	}
	count, unit, _ := strings.Cut(text, "/")
	span := spans[unit]
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 || span == 0 {
		return 0, 0, fmt.Errorf("is no rate; write a whole number and a time, like 20/s, 600/m or 1000/h, or off")
	}
	return float64(n) / span.Seconds(), n, nil
}

// Factors returns by what the rates of each tier are multiplied.
func (r *Rates) Factors() (map[string]float64, error) {
	factors := make(map[string]float64, len(r.Tiers))
	for _, name := range slices.Sorted(maps.Keys(r.Tiers)) {
		f, err := strconv.ParseFloat(r.Tiers[name], 64)
		if err != nil || f <= 0 || math.IsInf(f, 0) || math.IsNaN(f) {
			return nil, fmt.Errorf("%s has no number above 0, like 4 or 0.5", shown(name))
		}
		factors[name] = f
	}
	return factors, nil
}

// TierBy returns where a client's tier is found: in a claim of its token, or in a header.
func (r *Rates) TierBy() (claim, header string) {
	if name, ok := strings.CutPrefix(r.Tier, "claim:"); ok {
		return name, ""
	}
	name, _ := strings.CutPrefix(r.Tier, "header:")
	return "", name
}

// rates checks those of a mount; proxied says that there are proxies whose word on users is believed.
func (p *problems) rates(r *Rates, label string, proxied bool) {
	for _, part := range []struct{ key, text string }{
		{"session", r.Session}, {"principal", r.Principal}, {"address", r.Address},
	} {
		if _, _, err := ParseRate(part.text); err != nil {
			p.add(label+"rates."+part.key, "%s %v", shown(part.text), err)
		}
	}
	if _, err := r.Factors(); err != nil {
		p.add(label+"rates.tiers", "%v", err)
	}
	claim, header := r.TierBy()
	switch {
	case r.Tier != "" && (claim == "" && header == "" || r.Tier == header):
		p.add(label+"rates.tier", "%s is unknown; write claim:NAME or header:NAME", shown(r.Tier))
	case r.Tier == "" && len(r.Tiers) > 0:
		p.add(label+"rates.tiers", "have no effect without rates.tier, which says where a client's tier is found")
	case header != "":
		p.header(header, label+"rates.tier", proxied)
	}
}
