package ttlcache

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

func item(value string, public bool) Item[string] {
	return Item[string]{Value: value, Size: len(value), TTL: time.Minute, Public: public}
}

func TestItemsAreForThosePrincipalsThatMayHaveThem_B42_B45(t *testing.T) {
	c := New[string, string](Limits{})
	c.Put("alice", "k", 0, item("secret", true))
	for _, principal := range []string{"bob", ""} {
		if _, _, ok := c.Get(principal, "k"); ok {
			t.Errorf("%q got what took alice's credentials", principal)
		}
	}
	c.Put("", "k", 0, item("private", false))
	if _, _, ok := c.Get("bob", "k"); ok {
		t.Error("what is private to anonymous callers is shared")
	}
	c.Put("", "k", 0, item("open", true))
	for principal, want := range map[string]string{"bob": "open", "": "open", "alice": "secret"} {
		if got, _, _ := c.Get(principal, "k"); got != want {
			t.Errorf("%q got %q, want %q", principal, got, want)
		}
	}
	c.Put("", "k", 0, item("private again", false))
	if got, _, ok := c.Get("bob", "k"); ok {
		t.Errorf("bob got %q, which is public no longer", got)
	}
}

func TestItemsExpire_B40(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New[string, string](Limits{})
		c.Put("", "k", 0, item("v", false))
		time.Sleep(time.Minute - time.Nanosecond)
		if _, _, ok := c.Get("", "k"); !ok {
			t.Error("expired early")
		}
		time.Sleep(time.Nanosecond)
		if _, _, ok := c.Get("", "k"); ok {
			t.Error("shown after its time")
		}
	})
}

func TestWhatWasAskedForBeforeAnInvalidationIsNotKept_B44(t *testing.T) {
	c := New[string, string](Limits{})
	c.Put("", "stale", 0, item("v", false))
	c.Put("", "good", 0, item("v", false))
	_, before, _ := c.Get("", "stale")
	c.Drop(func(key string) bool { return key == "stale" })
	if _, _, ok := c.Get("", "stale"); ok {
		t.Error("what is stale is shown")
	}
	if _, _, ok := c.Get("", "good"); !ok {
		t.Error("what is not stale was dropped")
	}
	c.Put("", "stale", before, item("old", false))
	if _, _, ok := c.Get("", "stale"); ok {
		t.Error("an answer from before the invalidation is kept")
	}
}

func TestACacheIsBounded(t *testing.T) {
	c := New[string, string](Limits{Entries: 10, Bytes: 320})
	for i := range 100 {
		c.Put("", strconv.Itoa(i), 0, Item[string]{Size: 1, TTL: time.Minute})
		if len(c.entries) > 10 || c.bytes != len(c.entries) {
			t.Fatalf("%d entries of %d bytes", len(c.entries), c.bytes)
		}
	}
	for i := range 100 {
		c.Put("", strconv.Itoa(i), 0, Item[string]{Size: 20, TTL: time.Minute})
	}
	if c.bytes > 320 || len(c.entries) != 10 {
		t.Errorf("%d entries of %d bytes", len(c.entries), c.bytes)
	}
	c.Put("", "large", 0, Item[string]{Size: 21, TTL: time.Minute})
	if _, _, ok := c.Get("", "large"); ok {
		t.Error("one item has more than its share")
	}
	c.Drop(func(string) bool { return true })
	if c.bytes != 0 || len(c.entries) != 0 {
		t.Errorf("%d entries of %d bytes in an empty cache", len(c.entries), c.bytes)
	}
}

func TestExpiredItemsMakeRoomFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New[string, string](Limits{Entries: 2})
		c.Put("", "old", 0, Item[string]{TTL: time.Second})
		c.Put("", "young", 0, Item[string]{TTL: time.Hour})
		time.Sleep(time.Minute)
		c.Put("", "new", 0, Item[string]{TTL: time.Hour})
		if _, _, ok := c.Get("", "young"); !ok {
			t.Error("a fresh item made room, beside an expired one")
		}
	})
}

func TestEachTellsOfWhatMayBeShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New[string, string](Limits{})
		c.Put("", "over", 0, Item[string]{Size: 1, TTL: time.Second})
		time.Sleep(time.Minute)
		c.Put("alice", "k", 0, Item[string]{Size: 7, TTL: time.Hour})
		put := time.Now()
		time.Sleep(time.Minute)
		told := 0
		c.Each(func(key string, size int, since, until time.Time) {
			told++
			if key != "k" || size != 7 || !since.Equal(put) || !until.Equal(put.Add(time.Hour)) {
				t.Errorf("%s of %d bytes, from %v to %v", key, size, since, until)
			}
		})
		if told != 1 {
			t.Errorf("%d entries", told)
		}
	})
}
