package mirror

import (
	"hash/crc32"
	"sync/atomic"
)

// names are the names that tools with annotations have, whoever's they are: a bit each, of so many that few
// others share theirs. They are never forgotten. The zero names are none.
type names struct{ bits [64]atomic.Uint32 }

// May reports whether anything may be known about a tool, for any audience: about nearly all nothing is.
func (s *Tools) May(tool []byte) bool {
	if s.audiences.Load() == nil {
		return false
	}
	word, bit := s.annotated.at(tool)
	return word.Load()&bit != 0
}

func (n *names) add(tools map[string]*Plan) {
	for name := range tools {
		word, bit := n.at([]byte(name))
		word.Or(bit)
	}
}

// at returns where the bit of a name is.
func (n *names) at(name []byte) (word *atomic.Uint32, bit uint32) {
	hash := crc32.ChecksumIEEE(name)
	return &n.bits[hash/32%uint32(len(n.bits))], 1 << (hash % 32)
}
