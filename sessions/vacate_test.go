package sessions

import "testing"

// Only what is busy stays, and each session ends once.
func TestVacateEndsWhatIsNotBusy(t *testing.T) {
	busy, ended := map[string]bool{"b": true}, map[string]Cause{}
	table := NewTable(TableOptions[string]{
		Capacity: 3, Busy: func(v string) bool { return busy[v] }, Ended: func(v string, c Cause) { ended[v] = c },
	})
	for _, id := range []string{"a", "b", "c"} {
		if err := table.Add("", id, id); err != nil {
			t.Fatal(err)
		}
	}
	table.Vacate()
	if _, live := table.Get("b"); !live || table.Len() != 1 || ended["a"] != Closed || ended["c"] != Closed {
		t.Errorf("%d are left, ended %v", table.Len(), ended)
	}
	busy["b"] = false
	table.Vacate()
	if table.Len() != 0 || ended["b"] != Closed {
		t.Errorf("%d are left, ended %v", table.Len(), ended)
	}
}
