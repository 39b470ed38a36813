//go:build !unix

package usersocket

import "io/fs"

// owned: the directories of a user are kept from others by their parents.
func owned(fs.FileInfo) bool { return true }
