package gctune

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// arena is what the runtime's heap grows by on Linux, in bytes and as its addresses are aligned.
const arena = 64 << 20

// stretch is the part of the address space in which the heap's first bytes lie.
type stretch struct{ from, to uintptr }

// began is an address of the heap's as the process began.
var began = addressOf(make([]byte, os.Getpagesize()))

func addressOf(block []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(block))) }

// reserve has the heap's addresses go on for bytes, as those of a block of that size of which nothing is touched,
// and returns where they are, with what the heap had before: it begins anywhere in an arena, and may have come to the
// next one. The block is the heap's from then on, none of it in use.
func reserve(bytes uint64) *stretch {
	if unsafe.Sizeof(uintptr(0)) < 8 {
		return nil // arenas are small
	}
	block := make([]byte, bytes)
	at := addressOf(block)
	runtime.KeepAlive(block)
	from := at &^ (arena - 1)
	if first := began &^ (arena - 1); from-first == arena {
		from = first
	}
	return &stretch{from: from, to: at + uintptr(len(block))}
}

// hugePage is the size of one, in bytes.
const hugePage = 2 << 20

// advise has the pages of the stretch be huge ones, of 2 MiB, where the system offers such on advice
// (/sys/kernel/mm/transparent_hugepage/enabled is madvise): those that are touched from now on, and by MADV_COLLAPSE
// (Linux 6.1) those that were. Memory by which the heap grows beyond it has ordinary pages.
//
// Parts of the stretch are not the heap's yet, or not there, which the system says as an error after it has heeded the advice elsewhere;
// collapsing ends at such a part, so each page is collapsed by itself. That copies it: the scheduler is told, else nobody could be stopped
// meanwhile, nor go on.
func (s *stretch) advise() {
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, s.from, s.to-s.from, unix.MADV_HUGEPAGE)
	for at := (s.from + hugePage - 1) &^ (hugePage - 1); at+hugePage <= s.to; at += hugePage {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, at, hugePage, unix.MADV_COLLAPSE)
	}
}
