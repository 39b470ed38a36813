//go:build !linux

package proc

import "time"

// CPU returns the CPU time that a process has used.
func CPU(int) (time.Duration, error) { return 0, ErrUnsupported }

// RSS returns the resident memory of a process in bytes.
func RSS(int) (int64, error) { return 0, ErrUnsupported }

// FDs returns the number of open descriptors of a process.
func FDs(int) (int, error) { return 0, ErrUnsupported }

// Busy returns the CPU time that the whole machine has used.
func Busy() (busy, stolen time.Duration, err error) { return 0, 0, ErrUnsupported }

// DescriptorLimit is how many descriptors a process may have open.
func DescriptorLimit() (uint64, error) { return 0, ErrUnsupported }
