package view

// weight ranks verdicts, the worst highest.
type weight int

// The weights of waits that are not for a person.
const (
	harmless weight = iota
	usual
	circles
	lostStream
	muted
	silent
)

// weigh completes a verdict on a call.
func weigh(d diagnosis) diagnosis {
	if d.Weight == harmless && d.Who != "person" {
		d.Weight = usual
	}
	return d
}

// worse reports whether a verdict is worse than another.
func (d *diagnosis) worse(than *diagnosis) bool {
	if d.Grave != than.Grave {
		return d.Grave
	}
	return d.Weight > than.Weight
}
