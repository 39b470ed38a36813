// Package pages looks at the pages of bbolt's file that are in use, and whether what they say of themselves
// can be. The engine does that, too, as it opens the file for writing, but on goroutines of its own: what a
// damaged page causes there ends the process.
//
// A page is its number, its kind, how many elements it has and over how many more pages it extends, then the
// elements, which say where in it their keys and values are. Of a branch each leads to another page; of a
// leaf one may be a bucket, whose value names its root, or holds that page itself.
package pages

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/mcpbridge/bridge/sessions/store"
)

const (
	headSize    = 8 + 2 + 2 + 4
	elementSize = 16 // of a branch: position, key's length, page; of a leaf: flags, position, key's and value's length
	bucketHead  = 8 + 8

	branchPage = 0x01
	leafPage   = 0x02
	bucketFlag = 0x01

	firstPage  = 2  // behind those that tell of the last writes
	mostLevels = 64 // of pages above each other: more is a circle
)

// check is a look at one file.
type check struct {
	file io.ReaderAt
	size int      // of a page
	end  uint64   // no page has this number
	seen []uint64 // bits, by number: a page is somewhere once
}

// Check looks at all pages that can be reached from root, of a file with so many pages of a size, in
// bytes. The error is store.ErrCorrupt.
func Check(file io.ReaderAt, size int, end, root uint64) error {
	c := &check{file: file, size: size, end: end, seen: make([]uint64, end/64+1)}
	return c.page(root, 0)
}

// page looks at a page, and at those that it leads to.
func (c *check) page(number uint64, level int) error {
	if number < firstPage || number >= c.end || level > mostLevels || c.seen[number/64]>>(number%64)&1 != 0 {
		return damaged(number)
	}
	c.seen[number/64] |= 1 << (number % 64)
	var head [headSize]byte
	if _, err := c.file.ReadAt(head[:], int64(number)*int64(c.size)); err != nil { //nolint:gosec // within the file
		return damaged(number)
	}
	extends := uint64(binary.NativeEndian.Uint32(head[12:]))
	if binary.NativeEndian.Uint64(head[:]) != number || extends >= c.end-number {
		return damaged(number)
	}
	text := make([]byte, int(1+extends)*c.size)                                 //nolint:gosec // within the file
	if _, err := c.file.ReadAt(text, int64(number)*int64(c.size)); err != nil { //nolint:gosec // within the file
		return damaged(number)
	}
	return c.elements(number, text, level)
}

// elements looks at what a page says, which may be one within another.
func (c *check) elements(number uint64, text []byte, level int) error {
	if len(text) < headSize {
		return damaged(number)
	}
	kind, count := binary.NativeEndian.Uint16(text[8:]), int(binary.NativeEndian.Uint16(text[10:]))
	if kind != branchPage && kind != leafPage || headSize+count*elementSize > len(text) || kind == branchPage && count == 0 {
		return damaged(number)
	}
	for i := range count {
		at := headSize + i*elementSize
		element := text[at : at+elementSize]
		if kind == branchPage {
			if !fits(text, at, element[0:], uint64(binary.NativeEndian.Uint32(element[4:]))) {
				return damaged(number)
			}
			if err := c.page(binary.NativeEndian.Uint64(element[8:]), level+1); err != nil {
				return err
			}
			continue
		}
		key, value := uint64(binary.NativeEndian.Uint32(element[8:])), uint64(binary.NativeEndian.Uint32(element[12:]))
		if !fits(text, at, element[4:], key+value) {
			return damaged(number)
		}
		if binary.NativeEndian.Uint32(element)&bucketFlag != 0 {
			begin := uint64(at) + uint64(binary.NativeEndian.Uint32(element[4:])) + key //nolint:gosec // within the page
			if err := c.bucket(number, text[begin:begin+value], level); err != nil {
				return err
			}
		}
	}
	return nil
}

// fits reports whether so many bytes are in the page from where an element says, counted from its own place.
func fits(text []byte, at int, position []byte, length uint64) bool {
	return uint64(at)+uint64(binary.NativeEndian.Uint32(position))+length <= uint64(len(text)) //nolint:gosec // none is negative
}

// bucket looks at a bucket.
func (c *check) bucket(number uint64, value []byte, level int) error {
	if len(value) < bucketHead {
		return damaged(number)
	}
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return c.page(root, level+1)
	}
	return c.elements(number, value[bucketHead:], level+1)
}

func damaged(number uint64) error { return fmt.Errorf("%w: page %d", store.ErrCorrupt, number) }
