package passthrough

import "testing"

// A response that lasts keeps the buffer that it is copied by.
func TestWhatIsPassedOnIsCopiedBySmallPieces(t *testing.T) {
	p := New(Options{})
	defer p.Close()
	if p.reverse.BufferPool == nil {
		t.Fatal("by 32 KiB")
	}
	b := p.reverse.BufferPool.Get()
	if len(b) != piece {
		t.Errorf("by %d bytes", len(b))
	}
	p.reverse.BufferPool.Put(b)
}
