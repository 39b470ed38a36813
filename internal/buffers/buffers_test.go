package buffers

import "testing"

func TestBuffersHaveTheRoomThatWasAskedFor(t *testing.T) {
	for _, n := range []int{-1, 0, 1, 4095, 4096, 4097, 8192, 8193, 65 << 10, 256 << 10, 256<<10 + 1, 1 << 20} {
		if b := Get(n); cap(*b) < n || len(*b) != 0 {
			t.Errorf("%d bytes of %d", cap(*b), n)
		}
	}
	for size := 0; size < 300<<10; size += 1021 { // what is put back must do for whom it is given to
		b := make([]byte, 3, size+3)
		Put(&b)
		if got := Get(size); cap(*got) < size || len(*got) != 0 {
			t.Fatalf("%d bytes of %d", cap(*got), size)
		}
	}
}
