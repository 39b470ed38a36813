//go:build !unix

package connlimit

import "math"

// Descriptors returns how many files this process may have open: nobody counts
// them here.
func Descriptors() int { return math.MaxInt }
