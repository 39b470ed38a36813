package gctune

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// arena is what the runtime's heap grows by on Linux, in bytes and as its addresses are aligned.
const arena = 64 << 20

// advise has the pages of the heap up to bytes be huge ones, of 2 MiB, where the system offers such on advice
// (/sys/kernel/mm/transparent_hugepage/enabled is madvise). The memory of a block of that size is the heap's from then on,
// none of it in use; memory by which the heap grows later has ordinary pages.
func advise(bytes uint64) {
	if unsafe.Sizeof(uintptr(0)) < 8 {
		return // arenas are small
	}
	block := make([]byte, bytes)
	at := uintptr(unsafe.Pointer(unsafe.SliceData(block)))
	first := at &^ (arena - 1)
	// Of what the heap has not used yet nothing is there, which the system says as an error, after it has heeded the advice elsewhere.
	_, _, _ = unix.RawSyscall(unix.SYS_MADVISE, first, at+uintptr(len(block))-first, unix.MADV_HUGEPAGE)
	runtime.KeepAlive(block)
}
