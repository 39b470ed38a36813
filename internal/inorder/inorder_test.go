package inorder

import (
	"slices"
	"testing"
)

// chained returns links of one chain, and where those are noted whose time has come.
func chained(n int) (links []Link, begun *[]int) {
	var c Chain
	links, begun = make([]Link, n), new([]int)
	for i := range links {
		c.Add(&links[i])
		links[i].When(func() { *begun = append(*begun, i) })
	}
	return links, begun
}

func expect(t *testing.T, what string, got *[]int, want ...int) {
	t.Helper()
	if !slices.Equal(*got, want) {
		t.Errorf("%s: %v have begun, want %v", what, *got, want)
	}
}

func TestLinksBeginInTheirOrder(t *testing.T) {
	links, begun := chained(3)
	expect(t, "at first", begun, 0)
	links[0].Pass()
	links[0].Pass()
	expect(t, "after one has passed", begun, 0, 1)
	links[1].Pass()
	links[2].Pass()
	expect(t, "after all have", begun, 0, 1, 2)
	if c := links[0].chain; c.first != nil || c.last != nil {
		t.Error("links that are over are still in the chain")
	}
}

func TestALinkThatIsGivenUpLetsNobodyOvertake(t *testing.T) {
	links, begun := chained(4)
	links[1].Pass()
	links[2].Pass()
	expect(t, "which were given up are done with", begun, 0, 1, 2)
	links[0].Pass()
	expect(t, "then the one behind them", begun, 0, 1, 2, 3)
}

func TestWhatIsInNoChainWaitsForNobody(t *testing.T) {
	var alone Link
	for _, l := range []*Link{nil, &alone} {
		<-l.Time()
		l.Keep()
		l.Pass()
	}
}

func TestAKeptLinkIsPassedByItsKeeper(t *testing.T) {
	links, begun := chained(2)
	links[0].Keep()
	links[0].End()
	expect(t, "at its end", begun, 0)
	links[0].Pass()
	expect(t, "when its keeper passes", begun, 0, 1)
}

func TestLinksThatAreGivenUpAreNotKept(t *testing.T) {
	var chain Chain
	var first, last Link
	chain.Add(&first)
	for range 1000 {
		l := new(Link)
		chain.Add(l)
		l.Pass()
	}
	chain.Add(&last)
	if first.next != &last || last.prev != &first {
		t.Error("links that were given up are still in the chain")
	}
	last.Pass()
	if first.next != nil || chain.last != &first {
		t.Error("the last one is still in the chain")
	}
	chain.Add(&last)
	first.Pass()
	if chain.first != &last || last.prev != nil {
		t.Error("it is not its time")
	}
}
