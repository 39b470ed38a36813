package budget

import "testing"

func BenchmarkHold(b *testing.B) {
	account, _ := New(1 << 40).Open("p")
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			hold := On(account)
			_ = hold.Grow(8000)
			hold.Release()
		}
	})
}
