package sessions

import "testing"

// Only what is busy, or is to stay, does, and each session ends once.
func TestVacateEndsWhatIsNotBusy(t *testing.T) {
	busy, ended := map[string]bool{"b": true}, map[string]Cause{}
	stays := map[string]bool{"d": true}
	vacate := func(table *Table[string]) { table.Vacate(func(v string) bool { return stays[v] }) }
	table := NewTable(TableOptions[string]{
		Capacity: 4, Busy: func(v string) bool { return busy[v] }, Ended: func(v string, c Cause) { ended[v] = c },
	})
	for _, id := range []string{"a", "b", "c", "d"} {
		if err := table.Add("", id, id); err != nil {
			t.Fatal(err)
		}
	}
	vacate(table)
	if _, live := table.Get("b"); !live || table.Len() != 2 || ended["a"] != Closed || ended["c"] != Closed {
		t.Errorf("%d are left, ended %v", table.Len(), ended)
	}
	busy["b"], stays["d"] = false, false
	vacate(table)
	if table.Len() != 0 || ended["b"] != Closed || ended["d"] != Closed {
		t.Errorf("%d are left, ended %v", table.Len(), ended)
	}
}
