//go:build !purego

package rawjson

import "golang.org/x/sys/cpu"

const blockSize = 64

var haveAVX2 = cpu.X86.HasAVX2

// checkAVX2 returns how many of the n bytes at p, a multiple of 64 or one less,
// can stand in a string, judged without \u escapes. Three bytes of the string
// must stand before p, and p must not be escaped. A character that is cut off
// at the end of what was accepted has not been judged.
//
//go:noescape
func checkAVX2(p *byte, n int) int

// skipAVX2 returns the index of the first quote in the n bytes at p that is not
// escaped, or how many bytes were searched in vain, a multiple of 64 or one less.
//
//go:noescape
func skipAVX2(p *byte, n int) int

// checkBlocks is described in blocks.go.
func checkBlocks(b []byte, i int) int {
	if !haveAVX2 || len(b)-i < blockSize {
		return i
	}
	n := checkAVX2(&b[i], len(b)-i)
	if n == 0 {
		return i
	}
	return characterStart(b, i+n)
}

// skipBlocks is described in blocks.go.
func skipBlocks(b []byte, i int) int {
	if !haveAVX2 || len(b)-i < blockSize {
		return i
	}
	return i + skipAVX2(&b[i], len(b)-i)
}

// characterStart returns the start of the character before i if it is outside
// ASCII, because such a character may be cut off at i, and else i.
func characterStart(b []byte, i int) int {
	for k := i - 1; k >= i-3; k-- {
		switch c := b[k]; {
		case c >= 0xC0:
			return k
		case c < 0x80:
			return i
		}
	}
	return i
}
